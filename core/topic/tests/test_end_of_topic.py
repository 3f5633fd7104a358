"""The end of a terminated topic."""

from magnetar.core.testing.bench import Bench
from magnetar.core.testing.client import attached
from magnetar.core.topic.end_of_topic import EndOfTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType


async def test_it_is_told_once_when_all_is_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    client = await attached(topic, SubscriptionType.SHARED)
    subscription = topic.subscriptions["s"]
    (place,) = await desk.published(topic, b"x")
    await desk.dispatch()
    end = EndOfTopic(subscription.cursor)
    subscription.dispatcher = None  # nobody else tells
    await topic.terminate()
    end.announce([client.consumer])
    assert client.events == [], "not everything is acknowledged"
    subscription.cursor.ack_range(*place, place[1])
    for _ in range(2):
        end.announce([client.consumer])
    assert client.events == ["end"]
    end.again()
    end.announce([client.consumer])
    assert client.events == ["end", "end"]
