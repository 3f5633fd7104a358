"""What consumers did last."""

from magnetar.core.kernel.names import TopicName
from magnetar.core.topic.non_persistent import NonPersistentTopic
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest
from magnetar.wire.http.last_times import LastTimes
from magnetar.wire.http.tests.visitor import Visitor


async def test_never_is_0(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    assert LastTimes.of(await topic.subscription("s")) == (0, 0, 0)


async def test_those_who_have_left_count(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    subscription = await topic.subscription("s")
    subscription.last_flow_ms, subscription.last_acked_ms = 5, 7
    assert LastTimes.of(subscription) == (5, 0, 7)


async def test_the_latest_counts_of_those_who_are_here(visitor: Visitor) -> None:
    topic = await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    assert isinstance(topic, NonPersistentTopic)
    subscription = topic.subscription("s")
    for number in (3, 9, 6):
        consumer = Consumer(number, ConsumerRequest(name="c"), None, 0, 0)  # type: ignore[arg-type]  # it is told nothing
        consumer.last_flow_ms = number
        subscription.consumers.append(consumer)
    assert LastTimes.of(subscription) == (9, 0, 0)
