"""A topic that stores nothing: given out at once, or gone."""

import pytest

from magnetar.core.kernel.errors import ConsumerBusy, NotAllowed, NotReady, SubscriptionBusy
from magnetar.core.testing.bench import Bench, Outcome
from magnetar.core.testing.client import ClientProducer, attached_unstored
from magnetar.core.testing.entries import entry
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEYED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


def publish(topic: NonPersistentTopic, *payloads: bytes) -> object:
    outcome = Outcome()
    topic.publish(list(payloads), None, outcome)
    return outcome.result


async def test_what_nobody_can_take_is_gone(desk: Bench) -> None:
    topic = await desk.unstored()
    assert publish(topic, b"x") == (0, 0)
    a = await attached_unstored(topic, SHARED, permits=2)
    assert publish(topic, b"1", b"2", b"3") == (0, 1)
    assert a.got == [(0, 1), (0, 2)]
    a.flow(1)
    assert a.got == [(0, 1), (0, 2)]
    assert topic.subscriptions["s"].dropped == 1
    a.congested = True
    publish(topic, b"4")
    assert len(a.got) == 2


async def test_acknowledging_means_nothing_and_is_answered(desk: Bench) -> None:
    topic = await desk.unstored()
    a = await attached_unstored(topic, SHARED)
    publish(topic, b"x")
    a.ack((0, 0))
    a.nack()
    assert a.got == [(0, 0)]
    outcome = Outcome()
    topic.subscriptions["s"].cursor.when_saved(outcome)
    assert outcome.times == 1


async def test_types_are_kept_apart(desk: Bench) -> None:
    topic = await desk.unstored()
    a = await attached_unstored(topic, EXCLUSIVE)
    with pytest.raises(ConsumerBusy):
        await attached_unstored(topic, EXCLUSIVE)
    with pytest.raises(SubscriptionBusy):
        await attached_unstored(topic, SHARED)
    topic.detach(a.consumer)
    assert topic.subscriptions == {}
    await attached_unstored(topic, SHARED)


async def test_failover_serves_one_and_tells_all(desk: Bench) -> None:
    topic = await desk.unstored("non-persistent://public/default/t-partition-0")
    b = await attached_unstored(topic, FAILOVER, name="b")
    a = await attached_unstored(topic, FAILOVER, name="a")
    c = await attached_unstored(topic, FAILOVER, name="c")
    assert (a.events, b.events, c.events) == (["active"], ["active", "passive"], ["passive"])
    publish(topic, b"1")
    topic.detach(a.consumer)
    publish(topic, b"2")
    assert (a.got, b.got, c.got) == ([(0, 0)], [(0, 1)], [])
    assert b.events[-1] == "active"


async def test_a_key_stays_with_its_consumer(desk: Bench) -> None:
    topic = await desk.unstored()
    clients = [await attached_unstored(topic, KEYED, name=name) for name in "abc"]
    for _ in range(3):
        publish(topic, *[entry(key=b"%d" % i) for i in range(20)])
    for i in range(20):
        of_key = {(0, i), (0, 20 + i), (0, 40 + i)}
        assert [len(of_key & set(client.got)) for client in clients].count(3) == 1
    topic.detach(clients[0].consumer)
    before = len(clients[1].got) + len(clients[2].got)
    publish(topic, *[entry(key=b"%d" % i) for i in range(20)])
    assert len(clients[1].got) + len(clients[2].got) == before + 20


async def test_policies_hold_here_too(desk: Bench) -> None:
    topic = await desk.unstored()
    limited = await desk.topic("limited", max_consumers_per_topic=1, subscription_types=("Shared",))
    topic.set_policies(limited.policies)
    with pytest.raises(NotAllowed):
        await attached_unstored(topic, EXCLUSIVE)
    await attached_unstored(topic, SHARED)
    with pytest.raises(ConsumerBusy):
        await attached_unstored(topic, SHARED)


async def test_closing_sends_everybody_away(desk: Bench) -> None:
    topic = await desk.unstored()
    await topic.load()
    a, p = await attached_unstored(topic, SHARED), ClientProducer("p")
    assert await topic.attach_producer(p.producer)
    assert not topic.idle(caught_up_is_enough=True)
    await topic.delete()
    assert (a.events, p.events) == (["closed"], [("granted", None), "closed"])
    assert isinstance(publish(topic, b"x"), NotReady)
    with pytest.raises(NotReady):
        await topic.subscription("s")
    assert topic.idle(caught_up_is_enough=True)


async def test_unsubscribe_by_force(desk: Bench) -> None:
    topic = await desk.unstored()
    a = await attached_unstored(topic, SHARED)
    await topic.unsubscribe("s", force=True)
    assert a.events == ["closed"]
    await topic.unsubscribe("s", force=True)
