"""Partitions are counted, what only looks like one is a topic, and what is kept is never old."""

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.broker.topic_counts import KEPT_NAMES_MAX, TopicCounts
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.broker import Stores, running

DEFAULT = NamespaceName("public", "default")
OTHER = NamespaceName("public", "other")


async def make(broker: Broker, *names: str) -> None:
    for name in names:
        await broker.topic(TopicName.parse(name), any_name=True)


def full(counts: dict[str, int]) -> dict[str, int]:
    return {f"persistent://public/default/{name}": count for name, count in counts.items()}


async def test_partitions_are_counted_and_what_only_looks_so_is_a_topic() -> None:
    alike = ("p-partition-", "p-partition-2", "p-partition-1x", "p-partition-01", "q-partition-1")
    async with running(Stores()) as broker:
        await make(broker, *alike, "__system", "non-persistent://public/default/v")
        await broker.catalog.create_partitioned(TopicName.parse("p"), 2)
        await make(broker, "p-partition-0", "p-partition-1")
        expected = full({"p": 2, **dict.fromkeys(alike, 0)})
        for _ in range(2):
            assert await broker.topic_counts.of(DEFAULT) == expected
        assert await broker.topic_counts.of(OTHER) == {}
        await broker.stop()


async def test_what_is_kept_is_never_old() -> None:
    async with running(Stores()) as broker:
        p = TopicName.parse("p")
        await make(broker, "a", "p-partition-1")
        await broker.catalog.create_partitioned(p, 1)
        await make(broker, "p-partition-0")
        found = await broker.topic_counts.of(DEFAULT)
        assert found == full({"a": 0, "p": 1, "p-partition-1": 0})
        assert await broker.topic_counts.of(DEFAULT) is found, "nothing is looked at again"
        await broker.catalog.grow_partitioned(p, 2)
        assert await broker.topic_counts.of(DEFAULT) == full({"a": 0, "p": 2})
        await make(broker, "b")
        assert await broker.topic_counts.of(DEFAULT) == full({"a": 0, "b": 0, "p": 2})
        await broker.delete(TopicName.parse("a"), force=True)
        assert await broker.topic_counts.of(DEFAULT) == full({"b": 0, "p": 2})
        await broker.stop()


async def test_what_is_kept_is_bounded() -> None:
    """The namespace that was asked for longest ago is counted again."""
    metadata = MemoryMetadata()
    async with running(Stores()) as broker:
        counts = TopicCounts(broker.catalog, metadata)
        for namespace in (DEFAULT, OTHER):
            path = f"/managed-ledgers/{namespace}/persistent"
            async with trio.open_nursery() as nursery:
                for number in range(KEPT_NAMES_MAX // 4 + 1):
                    nursery.start_soon(metadata.put, f"{path}/{number}", b"", -1)
        first, other = await counts.of(DEFAULT), await counts.of(OTHER)
        assert await counts.of(OTHER) is other
        again = await counts.of(DEFAULT)
        assert again == first
        assert again is not first
        await broker.stop()
