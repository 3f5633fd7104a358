"""Credentials in metadata, in Kafka's form."""

from __future__ import annotations

import json

import pytest
import trio

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.quotas.limits import QuotaEntity, QuotaKey
from magnetar.core.quotas.store import change_limits
from magnetar.core.security.conversation import SCRAM_SHA_256, SCRAM_SHA_512, AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.core.security.live import LiveSessions
from magnetar.core.security.scram import credential_of, salted
from magnetar.core.security.scram_store import (
    ScramWatch,
    change_credentials,
    credentials_of,
    scram_mechanisms,
    scram_users,
)
from magnetar.core.security.tests.test_live import Guest
from magnetar.core.security.tests.test_scram import final_of
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.core.testing.metadata import overwrite

SALTED = salted(SCRAM_SHA_512, b"pw", b"salt", 8192)
CREDENTIAL = credential_of(SCRAM_SHA_512, SALTED, b"salt", 8192)


async def test_they_are_stored_as_kafka_stored_them() -> None:
    metadata = Stores().metadata
    assert await change_credentials(metadata, "a/b", {SCRAM_SHA_512: CREDENTIAL})
    found = await metadata.get("/config/users/a%2Fb")
    assert found is not None
    record = json.loads(found.value)
    assert record["version"] == 1
    text = record["config"][SCRAM_SHA_512]
    assert text.startswith("salt=c2FsdA==,stored_key=")
    assert text.endswith(",iterations=8192")
    assert await credentials_of(metadata, "a/b") == {SCRAM_SHA_512: CREDENTIAL}
    assert await scram_users(metadata) == ["a/b"]


async def test_other_configs_of_a_user_stay() -> None:
    metadata = Stores().metadata
    quotas = b'{"version":1,"config":{"producer_byte_rate":"1"}}'
    await overwrite(metadata, "/config/users/ali", quotas)
    assert not await change_credentials(metadata, "ali", {SCRAM_SHA_256: None})
    assert await change_credentials(metadata, "ali", {SCRAM_SHA_512: CREDENTIAL})
    assert await change_credentials(metadata, "ali", {SCRAM_SHA_512: None})
    found = await metadata.get("/config/users/ali")
    assert found is not None
    assert found.value == quotas
    assert await change_credentials(metadata, "eve", {SCRAM_SHA_512: CREDENTIAL})
    assert await change_credentials(metadata, "eve", {SCRAM_SHA_512: None})
    assert await scram_users(metadata) == ["ali"]


async def test_a_client_proves_its_password() -> None:
    metadata = Stores().metadata
    await change_credentials(metadata, "ali", {SCRAM_SHA_512: CREDENTIAL})
    mechanisms = scram_mechanisms(metadata)
    for name, password, right in (
        ("ali", b"pw", True),
        ("ali", b"no", False),
        ("eve", b"pw", False),
    ):
        exchange = mechanisms[SCRAM_SHA_512](AuthPeer())
        first = f"n,,n={name},r=client".encode()
        final = final_of(SCRAM_SHA_512, password, first, await exchange.respond(first))
        if right:
            assert (await exchange.respond(final)).startswith(b"v=")
            assert exchange.identity is not None
            assert (exchange.identity.name, exchange.identity.method) == ("ali", SCRAM_SHA_512)
        else:
            with pytest.raises(Unauthenticated, match="the name or the password is wrong"):
                await exchange.respond(final)
            assert exchange.identity is None


async def test_an_unknown_name_is_answered_like_a_known_one() -> None:
    metadata = Stores().metadata
    said = []
    for _ in range(2):
        exchange = scram_mechanisms(metadata)[SCRAM_SHA_256](AuthPeer())
        challenge = await exchange.respond(b"n,,n=eve,r=client")
        said.append(challenge.split(b",", 1)[1])
    assert said[0] == said[1]


async def test_who_is_removed_loses_its_sessions() -> None:
    metadata, live = Stores().metadata, LiveSessions()
    other = credential_of(SCRAM_SHA_256, SALTED[:32], b"salt", 8192)
    for name in ("ali", "a/b", "eve"):
        await change_credentials(metadata, name, {SCRAM_SHA_512: CREDENTIAL, SCRAM_SHA_256: other})
    ali, older, slashed, eve, token = (Guest() for _ in range(5))
    ali.identity = Identity("ali", (), SCRAM_SHA_512)
    older.identity = Identity("ali", (), SCRAM_SHA_256)
    slashed.identity = Identity("a/b", (), SCRAM_SHA_512)
    eve.identity = Identity("eve", (), SCRAM_SHA_512)
    token.identity = Identity("ali", (), "token")
    sessions = (ali, older, slashed, eve, token)
    for session in sessions:
        live.add(session)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ScramWatch(metadata, live).run)
        await change_credentials(metadata, "ali", {SCRAM_SHA_512: None})
        await change_credentials(metadata, "a/b", {SCRAM_SHA_512: None, SCRAM_SHA_256: None})
        await change_limits(metadata, QuotaEntity("eve"), {QuotaKey.PRODUCED_BYTES: 1.0})
        await settled()
        assert [bool(session.told) for session in sessions] == [True, False, True, False, False]
        nursery.cancel_scope.cancel()


async def test_a_report_of_everything_looks_at_all_sessions() -> None:
    metadata, live, ali = Stores().metadata, LiveSessions(), Guest()
    ali.identity = Identity("ali", (), SCRAM_SHA_512)
    live.add(ali)
    watch = ScramWatch(metadata, live)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        watch._paths.note("/config/users")
        await settled()
        assert ali.told == ["expired"]
        nursery.cancel_scope.cancel()
