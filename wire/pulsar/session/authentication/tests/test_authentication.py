"""Who a client is: proven at first, and again when the proof expires."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from magnetar.core.kernel.errors import Unauthenticated, WireError
from magnetar.core.security.access import Access
from magnetar.core.security.conversation import CERTIFICATE, AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.authentication.authentication import (
    ANSWER_SECONDS,
    LATER_SECONDS,
    REFRESH,
    ROUNDS_MAX,
)
from magnetar.wire.pulsar.session.conftest import Player, Stage
from magnetar.wire.pulsar.tests import peer


@asynccontextmanager
async def staged(access: Access) -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores, access=access) as broker:
        yield Stage(stores, broker)


def connect(method: str, data: bytes, **more: Any) -> bytes:
    return peer.connect(auth_method_name=method, auth_data=data, **more)


def answer(method: str, data: bytes) -> bytes:
    response = pb.AuthData(auth_method_name=method, auth_data=data)
    return peer.frame("AUTH_RESPONSE", pb.CommandAuthResponse(response=response))


async def refused(client: Player, *said: bytes) -> str:
    received = await client.says_one(*said)
    assert (received.kind, received.body.request_id) == ("ERROR", 2**64 - 1)
    assert received.body.error == pb.AuthenticationError
    assert client.line.ending == received.body.message
    assert received.body.message.startswith("Failed to authenticate")
    return str(received.body.message)


async def test_a_client_says_who_it_is(guarded_stage: Stage) -> None:
    client = await guarded_stage.player(name="alice")
    assert client.session.identity.name == "alice"
    other = guarded_stage.stranger()
    assert (await other.says_one(connect("basic", b"bob:secret"))).kind == "CONNECTED"
    assert other.session.identity.name == "bob"


async def test_what_is_wrong_is_refused_and_the_connection_ends(guarded_stage: Stage) -> None:
    stage = guarded_stage
    text = await refused(stage.stranger(), connect("basic", b"bob:wrong"))
    assert "wrong" in text
    assert "bob" not in text
    await refused(stage.stranger(), connect("none", b""))
    await refused(stage.stranger(), connect("athenz", b"x"))


async def test_anonymous_clients_are_known_by_a_name_if_they_are_allowed() -> None:
    async with staged(guarded(anonymous=Identity("nobody"))) as stage:
        client = await stage.player()
        assert client.session.identity.name == "nobody"
        await refused(stage.stranger(), connect("basic", b"bob:wrong"))


class Slow:
    """A proof of several rounds, each of which waits."""

    refusal = ""

    def __init__(self, rounds: int) -> None:
        self.identity: Identity | None = None
        self.go = trio.Semaphore(0)
        self._left = rounds

    async def respond(self, said: bytes) -> bytes:
        await self.go.acquire()
        if said == b"wrong":
            raise Unauthenticated("no")
        self._left -= 1
        if not self._left:
            self.identity = Identity(said.decode())
        return b"again"


def slow(rounds: int) -> tuple[Access, Slow]:
    proof = Slow(rounds)
    return Access({"slow": lambda _peer: proof}, Judge(), None), proof


async def test_a_proof_may_take_rounds() -> None:
    access, proof = slow(rounds=2)
    async with staged(access) as stage:
        client = stage.stranger()
        assert await client.says(connect("slow", b"a")) == []
        proof.go.release()
        (challenge,) = await client.receive()
        assert challenge.kind == "AUTH_CHALLENGE"
        assert challenge.body.challenge.auth_method_name == "slow"
        assert challenge.body.challenge.auth_data == b"again"
        proof.go.release()
        assert (await client.says_one(answer("slow", b"alice"))).kind == "CONNECTED"
        assert client.session.identity.name == "alice"
        assert await client.says(answer("slow", b"unasked")) == []


async def test_the_rounds_of_a_proof_are_limited() -> None:
    access, proof = slow(rounds=ROUNDS_MAX + 2)
    for _ in range(ROUNDS_MAX + 2):
        proof.go.release()
    async with staged(access) as stage:
        client = stage.stranger()
        received = await client.says_one(connect("slow", b"x"))
        for _ in range(ROUNDS_MAX - 1):
            assert received.kind == "AUTH_CHALLENGE"
            received = await client.says_one(answer("slow", b"x"))
        assert "rounds" in await refused(client, answer("slow", b"x"))


@pytest.mark.parametrize(
    "early", [peer.producer(1, 1, "t"), peer.send(1, 0), peer.ping(), peer.flow(1, 1)]
)
async def test_nothing_is_taken_before_the_client_is_known(early: bytes) -> None:
    access, _proof = slow(rounds=1)
    async with staged(access) as stage:
        client = stage.stranger()
        with pytest.raises(WireError, match="while authenticating"):
            client.feed(connect("slow", b"a"), early)
        assert await client.receive() == []


async def test_a_client_that_takes_too_long_is_disconnected() -> None:
    access, proof = slow(rounds=1)
    async with staged(access) as stage:
        client = stage.stranger()
        await client.says(connect("slow", b"a"))
        client.session.quiet()
        assert client.line.ending is not None
        client.session.closed("the end")
        proof.go.release()
        assert await client.receive() == []


# -- expired proofs ------------------------------------------------------------------------------


async def expired(stage: Stage, **flags: bool) -> Player:
    client = stage.stranger()
    features = pb.FeatureFlags(**flags)
    said = connect("token", b"alice", feature_flags=features)
    assert (await client.says_one(said)).kind == "CONNECTED"
    client.session.expired()
    return client


async def test_a_client_refreshes_what_has_expired(guarded_stage: Stage) -> None:
    client = await expired(guarded_stage, supports_auth_refresh=True)
    before = client.session.identity
    (challenge,) = await client.receive()
    assert challenge.kind == "AUTH_CHALLENGE"
    assert challenge.body.challenge.auth_method_name == "token"
    assert challenge.body.challenge.auth_data == REFRESH
    client.session.expired()
    assert await client.receive() == [], "it is asked once"
    assert await client.says(answer("token", b"alice")) == []
    assert client.line.ending is None
    assert client.session.identity is not before
    client.session.expired()
    assert [each.kind for each in await client.receive()] == ["AUTH_CHALLENGE"]


async def test_a_client_that_still_believes_in_its_token_is_not_asked_for_another() -> None:
    """It would say the same again."""

    class Brief:
        identity: Identity | None = None

        async def respond(self, said: bytes) -> bytes:
            self.identity = Identity(said.decode(), expires_at=1_700_000_000 + 3)
            return b""

    async with staged(Access({"brief": lambda _peer: Brief()}, Judge(), None)) as stage:
        client = stage.stranger()
        features = pb.FeatureFlags(supports_auth_refresh=True)
        said = connect("brief", b"alice", feature_flags=features)
        assert (await client.says_one(said)).kind == "CONNECTED"
        stage.stores.clock.forward(3)
        client.session.expired()
        assert await client.receive() == []
        stage.stores.clock.forward(LATER_SECONDS)
        client.session.expired()
        assert [each.kind for each in await client.receive()] == ["AUTH_CHALLENGE"]


async def test_a_refresh_may_take_roles_away() -> None:
    roles = [("alice", "writers"), ("alice",)]

    class Roles:
        identity: Identity | None = None
        refusal = ""

        async def respond(self, said: bytes) -> bytes:
            self.identity = Identity(said.decode(), roles.pop(0))
            return b""

    async with staged(Access({"roles": lambda _peer: Roles()}, Judge(), None)) as stage:
        await stage.permit(writers="produce")
        client = stage.stranger()
        assert (await client.says_one(connect("roles", b"alice"))).kind == "CONNECTED"
        assert (await client.says_one(peer.producer(1, 1, "t"))).kind == "PRODUCER_SUCCESS"
        client.session.expired()
        assert (await client.receive())[0].kind == "AUTH_CHALLENGE"
        assert (await client.says_one(answer("roles", b"alice"))).kind == "CLOSE_PRODUCER"


async def test_a_client_that_cannot_refresh_is_disconnected(guarded_stage: Stage) -> None:
    client = await expired(guarded_stage, supports_auth_refresh=False)
    assert client.line.ending == "its credentials have expired, and it cannot refresh them"


async def test_a_client_that_does_not_answer_is_disconnected(guarded_stage: Stage) -> None:
    client = await expired(guarded_stage, supports_auth_refresh=True)
    guarded_stage.stores.clock.forward(ANSWER_SECONDS - 1)
    client.session.expired()
    assert client.line.ending is None
    guarded_stage.stores.clock.forward(1)
    client.session.expired()
    assert client.line.ending is not None


@pytest.mark.parametrize(
    "said", [answer("token", b"bob"), answer("basic", b"alice:secret"), answer("token", b"")]
)
async def test_a_refresh_changes_neither_name_nor_method(guarded_stage: Stage, said: bytes) -> None:
    client = await expired(guarded_stage, supports_auth_refresh=True)
    await client.receive()
    await refused(client, said)


# -- proxies -------------------------------------------------------------------------------------


async def test_a_proxy_says_for_whom_it_speaks(guarded_stage: Stage) -> None:
    def proxy() -> Player:
        return guarded_stage.stranger(proxy_roles=frozenset(["proxy"]))

    await guarded_stage.permit(proxy="produce", alice="produce consume")
    client = proxy()
    said = connect("token", b"proxy", original_principal="alice")
    assert (await client.says_one(said)).kind == "CONNECTED"
    assert (await client.says_one(peer.producer(1, 1, "t"))).kind == "PRODUCER_SUCCESS"
    received = await client.says_one(peer.subscribe(2, 1, "t", "s"))
    assert received.body.error == pb.AuthorizationError, "the proxy may not consume"
    for name, original in ((b"proxy", ""), (b"proxy", "proxy"), (b"alice", "bob")):
        client = proxy()
        received = await client.says_one(connect("token", name, original_principal=original))
        assert (received.kind, received.body.error) == ("ERROR", pb.AuthorizationError)
        assert client.line.ending is not None


class ByCertificate:
    """The mechanism `tls`: the client says nothing that counts."""

    def __init__(self, _peer: AuthPeer) -> None:
        self.identity: Identity | None = None

    async def respond(self, said: bytes) -> bytes:
        assert said == b""
        self.identity = Identity("alice", method=CERTIFICATE)
        return b""


async def test_a_certificate_stays_the_same_so_it_is_not_asked_for_again() -> None:
    async with staged(Access({CERTIFICATE: ByCertificate}, anonymous=None)) as stage:
        client = stage.stranger()
        said = connect("tls", b"", feature_flags=pb.FeatureFlags(supports_auth_refresh=True))
        assert (await client.says_one(said)).kind == "CONNECTED"
        client.session.expired()
        assert client.line.ending == (
            "its certificate has expired, or its authority is trusted no longer"
        )


async def test_a_certificate_without_the_method_proves_nothing() -> None:
    async with staged(Access({CERTIFICATE: ByCertificate}, anonymous=None)) as stage:
        await refused(stage.stranger(), connect("none", b""))
