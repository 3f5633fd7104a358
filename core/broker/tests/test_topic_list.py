"""Which topics there are, however they came to be."""

from magnetar.core.broker.topic_list import (
    partitions_by_topic,
    persistent_topics_of,
    topics_of,
)
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.testing.broker import Stores, running

DEFAULT = NamespaceName("public", "default")


async def test_stored_promised_and_loaded_topics_are_listed_once() -> None:
    stores = Stores()
    odd = TopicName.parse("a b%c")
    async with running(stores) as broker:
        await broker.topic(odd)
        await broker.topic(TopicName.parse("__system"))
        await broker.catalog.create_partitioned(TopicName.parse("p"), 2)
        await broker.topic(TopicName.parse("p-partition-1"))
        await broker.topic(TopicName.parse("non-persistent://public/default/v"))
        expected = [
            "non-persistent://public/default/v",
            odd.full,
            "persistent://public/default/p-partition-0",
            "persistent://public/default/p-partition-1",
        ]
        assert await topics_of(broker, DEFAULT) == expected
        assert await topics_of(broker, NamespaceName("public", "other")) == []
        every = await topics_of(broker, DEFAULT, system=True)
        assert sorted(every) == sorted([*expected, "persistent://public/default/__system"])
        await broker.stop()
    async with running(stores) as broker:
        assert await topics_of(broker, DEFAULT) == expected[1:], "nothing is loaded"


async def test_partitions_are_counted_and_what_only_looks_so_is_a_topic() -> None:
    stores = Stores()
    alike = ("p-partition-", "p-partition-2", "p-partition-1x", "p-partition-01", "q-partition-1")
    async with running(stores) as broker:
        for name in (*alike, "__system", "non-persistent://public/default/v"):
            await broker.topic(TopicName.parse(name), any_name=True)
        await broker.catalog.create_partitioned(TopicName.parse("p"), 2)
        for name in ("p-partition-0", "p-partition-1"):
            await broker.topic(TopicName.parse(name))
        expected = {f"persistent://public/default/{name}": 0 for name in alike}
        expected["persistent://public/default/p"] = 2
        assert await partitions_by_topic(broker, DEFAULT) == expected
        assert await partitions_by_topic(broker, NamespaceName("public", "other")) == {}
        once = await persistent_topics_of(broker, DEFAULT)
        assert sorted(name.full for name in once) == sorted(expected)
        await broker.stop()
