"""What is the same from start to start, and for all brokers of a cluster."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka.configs import MAX_MESSAGE_BYTES, RETENTION_MS
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.services import CLUSTER_ID, KafkaServices


async def cluster_id(stores: Stores) -> str:
    async with running(stores) as broker:
        services = KafkaServices(broker, KafkaOptions())
        await services.open()
        return services.cluster_id


async def test_a_cluster_keeps_its_id() -> None:
    stores = Stores()
    first = await cluster_id(stores)
    assert len(first) == 22
    assert await cluster_id(stores) == first


async def test_of_two_brokers_that_start_together_one_names_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = Stores()
    put = stores.metadata.put

    async def late(path: str, value: bytes, expected: int) -> int:
        if path == CLUSTER_ID:
            await put(path, b"the-other-one", ABSENT)
            raise AlreadyExists(path)
        return await put(path, value, expected)

    monkeypatch.setattr(stores.metadata, "put", late)
    assert await cluster_id(stores) == "the-other-one"


async def test_an_operator_sets_the_defaults_of_topics() -> None:
    async with running() as broker:
        services = KafkaServices(broker, KafkaOptions(retention_ms=5, batch_bytes_max=6))
        assert services.defaults == {RETENTION_MS: "5", MAX_MESSAGE_BYTES: "6"}
