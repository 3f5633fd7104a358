"""Clients of a topic that remember what they were told."""

from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.testing.bench import bench
from magnetar.core.testing.client import ClientProducer, attached, attached_unstored
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.publishing.producer import AccessMode
from magnetar.core.topic.subscription.subscription import SubscriptionType


async def test_what_came_and_what_came_again() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        client = await attached(topic, SubscriptionType.SHARED, permits=2)
        places = await desk.published(topic, b"a", b"b", b"c")
        await desk.dispatch()
        assert (client.got, client.payloads, client.redelivered) == (places[:2], [b"a", b"b"], {})
        client.nack(places[0])
        client.ack(places[1])
        assert client.take() == places[:2]
        client.flow(2)
        await desk.dispatch()
        assert client.take() == [places[0], places[2]]
        assert client.redelivered == {places[0]: 1}
        client.ack_bits(places[2], 0b10, 2)
        client.nack()
        client.flow(2)
        await desk.dispatch()
        assert client.bits == {places[2]: 0b10}
        topic.subscriptions["s"].disconnect_all()
        assert client.events == ["closed"]


async def test_a_producer_is_told_what_becomes_of_it() -> None:
    async with bench() as desk:
        topic = await desk.topic()
        first, second = ClientProducer("a"), ClientProducer("b", AccessMode.WAIT_FOR_EXCLUSIVE)
        await topic.attach_producer(first.producer)
        assert not await topic.attach_producer(second.producer)
        topic.detach_producer(first.producer)
        await desk.dispatch()
        assert (first.events, second.events) == ([("granted", None)], [("granted", 0)])


async def test_where_nothing_is_stored() -> None:
    async with bench() as desk:
        policies = effective(Effective(), NamespacePolicies(), TopicPolicies())
        topic = NonPersistentTopic(desk.env, TopicName.parse("non-persistent://a/b/t"), policies)
        client = await attached_unstored(topic, SubscriptionType.SHARED, permits=1)
        topic.publish([b"x", b"y"], None, lambda _result: None)
        assert client.payloads == [b"x"]
