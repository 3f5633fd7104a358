"""Limits in metadata, in ZooKeeper's form."""

from __future__ import annotations

import json

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.quotas.limits import DEFAULT, QuotaEntity, QuotaKey
from magnetar.core.quotas.store import (
    StoredQuotas,
    change_limits,
    entity_of,
    limits_in,
    path_of,
)
from magnetar.core.quotas.usage import QuotaUsage
from magnetar.core.security.conversation import SCRAM_SHA_512
from magnetar.core.security.scram import credential_of
from magnetar.core.security.scram_store import change_credentials, credentials_of, scram_users
from magnetar.core.testing.bench import settled
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.metadata import overwrite

BYTES, SHARE = QuotaKey.PRODUCED_BYTES, QuotaKey.REQUEST_TIME
NAME = st.one_of(st.just(DEFAULT), st.just("<default>"), st.text(min_size=1, max_size=5))
OPTIONAL = st.one_of(st.none(), NAME)


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (QuotaEntity("a/b"), "/config/users/a%2Fb"),
        (QuotaEntity(DEFAULT), "/config/users/<default>"),
        (QuotaEntity("ali", "c d"), "/config/users/ali/clients/c%20d"),
        (QuotaEntity(DEFAULT, DEFAULT), "/config/users/<default>/clients/<default>"),
        (QuotaEntity(client="c"), "/config/clients/c"),
        (QuotaEntity(address="10.0.0.1"), "/config/ips/10.0.0.1"),
    ],
)
def test_paths_are_those_of_zookeeper(entity: QuotaEntity, path: str) -> None:
    assert path_of(entity) == path
    assert entity_of(path) == entity


@given(
    st.one_of(
        st.tuples(NAME, OPTIONAL, st.none()),
        st.tuples(st.none(), NAME, st.none()),
        st.tuples(st.none(), st.none(), NAME),
    )
)
def test_no_two_entities_have_one_path(names: tuple[str | None, ...]) -> None:
    entity = QuotaEntity(*names)
    assert entity_of(path_of(entity)) == entity


def test_other_configs_limit_nothing() -> None:
    configs = {
        "SCRAM-SHA-512": "salt=x",
        "producer_byte_rate": "1.5",
        "consumer_byte_rate": "nan",
        "request_percentage": "-1",
        "controller_mutation_rate": "many",
    }
    assert limits_in(configs) == {BYTES: 1.5}
    assert entity_of("/config/topics/t") is None


async def test_credentials_and_limits_of_a_user_are_apart() -> None:
    metadata = MemoryMetadata()
    credential = credential_of(SCRAM_SHA_512, b"x" * 64, b"salt", 4096)
    await change_limits(metadata, QuotaEntity("ali"), {BYTES: 1024.0, SHARE: 0.5})
    await change_credentials(metadata, "ali", {SCRAM_SHA_512: credential})
    await change_limits(metadata, QuotaEntity(DEFAULT), {BYTES: 1.0})
    found = await metadata.get("/config/users/ali")
    assert found is not None
    config = json.loads(found.value)["config"]
    assert (config["producer_byte_rate"], config["request_percentage"]) == ("1024", "0.5")
    await change_limits(metadata, QuotaEntity("ali"), {BYTES: None, SHARE: None})
    assert await credentials_of(metadata, "ali") == {SCRAM_SHA_512: credential}
    assert await scram_users(metadata) == ["ali"], "the default is no user"
    await change_credentials(metadata, "ali", {SCRAM_SHA_512: None})
    assert await metadata.get("/config/users/ali") is None


async def test_what_is_stored_is_in_force() -> None:
    metadata, usage = MemoryMetadata(), QuotaUsage(FixedClock())
    before = (QuotaEntity("ali"), QuotaEntity("eve", "c"), QuotaEntity(client=DEFAULT))
    for entity in before:
        await change_limits(metadata, entity, {BYTES: 1.0})
    stored = StoredQuotas(metadata, usage)
    await stored.open()
    assert set(usage.rules.by_entity) == set(before)
    assert usage.any
    await stored.change(QuotaEntity("ali", "c"), {BYTES: 2.0})
    assert usage.rules.by_entity[QuotaEntity("ali", "c")] == {BYTES: 2.0}
    for entity in (*before, QuotaEntity("ali", "c")):
        await stored.change(entity, {BYTES: None})
    assert not usage.any


async def test_what_another_broker_stores_is_noticed() -> None:
    metadata, usage = MemoryMetadata(), QuotaUsage(FixedClock())
    stored = StoredQuotas(metadata, usage)
    await stored.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stored.run)
        await change_limits(metadata, QuotaEntity("ali", "c"), {BYTES: 1.0})
        await change_limits(metadata, QuotaEntity(address="10.0.0.1"), {QuotaKey.CONNECTIONS: 1.0})
        await overwrite(metadata, "/config/users/eve", b'{"version":1,"config":{}}')
        await settled()
        assert set(usage.rules.by_entity) == {
            QuotaEntity("ali", "c"),
            QuotaEntity(address="10.0.0.1"),
        }
        nursery.cancel_scope.cancel()


async def test_a_report_of_everything_finds_what_is_gone() -> None:
    metadata, usage = MemoryMetadata(), QuotaUsage(FixedClock())
    stored = StoredQuotas(metadata, usage)
    usage.rules.put(QuotaEntity("gone"), {BYTES: 1.0})
    usage.rules.put(QuotaEntity("gone", "c"), {BYTES: 1.0})
    usage.rules.put(QuotaEntity(client="gone"), {BYTES: 1.0})
    await change_limits(metadata, QuotaEntity("ali", "c"), {BYTES: 1.0})
    await stored.settled()
    assert set(usage.rules.by_entity) == {QuotaEntity("ali", "c")}
