"""A broker for tests: what survives it is in its stores."""

from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType

NAME = TopicName.parse("t")


async def test_the_next_broker_finds_what_the_last_one_stored() -> None:
    stores = Stores()
    async with running(stores, max_producers_per_topic=3) as broker:
        topic = await broker.topic(NAME)
        assert isinstance(topic, PersistentTopic)
        assert topic.policies.max_producers_per_topic == 3
        client = await attached(topic, SubscriptionType.SHARED)
        topic.publish([b"x"], None, lambda _result: None)
        await settled()
        broker.dispatch()
        assert client.payloads == [b"x"]
        await broker.stop()
    async with running(stores) as broker:
        found = await broker.topic(NAME, create=False)
        assert list(found.subscriptions) == ["s"]
        assert found.policies.max_producers_per_topic == 0
