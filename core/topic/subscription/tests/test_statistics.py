"""Snapshots of subscriptions, however their entries are dealt out."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.names import TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest, Subscription
from magnetar.core.topic.subscription.statistics import NO_TIMES
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.topic import Topic


class Taker:
    """The other side of a consumer: takes everything."""

    congested = False

    def deliver(self, *_: object) -> None:
        pass

    def activity(self, active: bool) -> None:
        pass

    def end_of_topic(self) -> None:
        pass

    def closed_by_broker(self) -> None:
        pass


@pytest.mark.parametrize("kind", SubscriptionType)
async def test_every_type_is_told(kind: SubscriptionType, nursery: trio.Nursery) -> None:
    broker = Broker(
        BrokerSettings(), MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None
    )
    await nursery.start(broker.run)
    topic = await broker.topic(TopicName.parse("a"))
    assert topic.stored is not None
    subscription = await topic.stored.subscription("s")
    assert subscription.statistics().read == subscription.cursor.read_from
    consumer = topic.attach(subscription, 1, ConsumerRequest("c"), kind, Taker())
    stored = trio.Event()
    topic.publish([b"m"] * 3, None, lambda _: stored.set())
    await stored.wait()
    subscription.flow(consumer, 2)
    broker.dispatch()
    now = subscription.statistics()
    assert now.read >= (0, 2)  # dealing by key looks ahead
    assert now.active is (consumer if kind.ordered else None)
    assert now.unacked == (0 if kind.ordered else 2)
    keyed = kind is SubscriptionType.KEY_SHARED
    assert now.hash_ranges == ({"c": [(1, 65535)]} if keyed else {})
    assert not now.blocked
    nursery.cancel_scope.cancel()


async def test_when_consumers_did_something_last(desk: Bench) -> None:
    """Those who have left count, where a topic remembers them."""
    for topic, remembered in ((await desk.topic(), 9), (await desk.unstored(), 0)):
        subscription = await topic.subscription("s")
        assert subscription.last_times() == NO_TIMES
        for number in (3, 9, 6):
            consumer = attach(topic, subscription)
            consumer.last_flow_ms = number
            if number == 9:
                topic.detach(consumer)
                subscription = await topic.subscription("s")
        assert subscription.last_times() == (max(remembered, 6), 0, 0)


def attach(topic: Topic, subscription: Subscription) -> Consumer:
    request, kind = ConsumerRequest("c"), SubscriptionType.SHARED
    return topic.attach(subscription, 1, request, kind, Taker())
