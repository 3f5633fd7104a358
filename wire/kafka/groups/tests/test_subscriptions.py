"""Subscriptions of all topics, loaded or not."""

from magnetar.core.kernel.names import MANAGED_LEDGERS, NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka.groups.subscriptions import Subscriptions


async def test_they_come_and_go() -> None:
    async with running(Stores()) as broker:
        found = Subscriptions(broker)
        assert await found.names() == []
        await broker.catalog.create_partitioned(TopicName.parse("p"), 2)
        await broker.catalog.create_namespace(
            NamespaceName.parse("public/functions"), NamespacePolicies()
        )
        topics = []
        for name in ("a", "persistent://public/functions/b", "p-partition-1", "q-partition-1"):
            topic = await broker.topic(TopicName.parse(name), any_name=True)
            assert isinstance(topic, PersistentTopic)
            await topic.subscription("s/1")
            topics.append(topic)
        await topics[0].subscription("only a")
        await topics[0].subscription("pulsar.repl.x")
        assert await found.names() == ["only a", "s/1"]
        assert await found.partitions("s/1") == [
            ("a", 0),
            ("p", 1),
            ("q-partition-1", 0),
            ("public/functions/b", 0),
        ]
        await topics[0].unsubscribe("s/1", force=False)
        await broker.delete(topics[2].name, force=True)
        assert await found.partitions("s/1") == [("q-partition-1", 0), ("public/functions/b", 0)]
        assert await Subscriptions(broker).partitions("only a") == [("a", 0)]


async def test_a_report_of_the_whole_tree_has_them_listed_again() -> None:
    """What a metadata store over a network reports after a connection that broke."""
    async with running(Stores()) as broker:
        found = Subscriptions(broker)
        assert await found.names() == []
        watches, broker.metadata._watches = broker.metadata._watches, []
        topic = await broker.topic(TopicName.parse("a"), by_order=True)
        await topic.subscription("s")
        broker.metadata._watches = watches
        assert await found.names() == [], "it has heard nothing"
        await overwrite(broker.metadata, MANAGED_LEDGERS, b"")
        assert await found.names() == ["s"]
