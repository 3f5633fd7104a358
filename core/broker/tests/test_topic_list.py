"""Which topics there are, however they came to be."""

from magnetar.core.broker.topic_list import persistent_topics_of, topics_of
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


async def test_what_only_looks_like_a_partition_is_a_topic() -> None:
    stores = Stores()
    alike = ("p-partition-2", "p-partition-01", "q-partition-1")
    async with running(stores) as broker:
        for name in (*alike, "__system", "non-persistent://public/default/v"):
            await broker.topic(TopicName.parse(name), any_name=True)
        await broker.catalog.create_partitioned(TopicName.parse("p"), 2)
        await broker.topic(TopicName.parse("p-partition-1"))
        found = await persistent_topics_of(broker, DEFAULT)
        assert found == {TopicName.parse(name) for name in ("p", *alike)}
        await broker.stop()
