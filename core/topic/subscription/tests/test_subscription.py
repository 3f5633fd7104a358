"""Who may attach, what moves the cursor, and that a reset finds nobody in the way."""

import tracemalloc

import pytest
import trio

from magnetar.core.kernel.errors import (
    ConsumerBusy,
    Invalid,
    NotAllowed,
    NotReady,
    StorageFailed,
    SubscriptionBusy,
)
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import Bench, Outcome, bench, settled
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.subscription.subscription import SubscriptionType

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEYED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


async def test_one_type_at_a_time(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED)
    for other in (EXCLUSIVE, FAILOVER, KEYED):
        with pytest.raises(SubscriptionBusy):
            await attached(topic, other)
    topic.detach(a.consumer)
    await attached(topic, KEYED)
    assert topic.subscriptions["s"].kind == "Key_Shared"


async def test_exclusive_means_one(desk: Bench) -> None:
    topic = await desk.topic()
    await attached(topic, EXCLUSIVE)
    with pytest.raises(ConsumerBusy):
        await attached(topic, EXCLUSIVE)


async def test_no_more_consumers_than_allowed(desk: Bench) -> None:
    topic = await desk.topic(max_consumers_per_subscription=1)
    await attached(topic, SHARED)
    with pytest.raises(ConsumerBusy):
        await attached(topic, SHARED)
    await attached(topic, SHARED, subscription="other")
    topic = await desk.topic("u", max_consumers_per_topic=1)
    await attached(topic, SHARED)
    with pytest.raises(ConsumerBusy):
        await attached(topic, SHARED, subscription="other")


async def test_types_may_be_switched_off(desk: Bench) -> None:
    topic = await desk.topic(subscription_types=("Shared",))
    with pytest.raises(NotAllowed):
        await attached(topic, EXCLUSIVE)


async def test_cumulative_acknowledgement_means_nothing_to_those_who_share(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x", b"y")
    a = await attached(topic, SHARED)
    topic.subscriptions["s"].ack_to(a.consumer, places[1], None)
    assert topic.subscriptions["s"].cursor.mark_delete == START


async def test_a_cumulative_acknowledgement_of_what_does_not_exist(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"x", b"y")
    a = await attached(topic, EXCLUSIVE)
    topic.subscriptions["s"].ack_to(a.consumer, (99, 99), None)
    assert topic.subscriptions["s"].cursor.mark_delete == places[1]
    assert a.consumer.messages_acked == 2


async def test_reset_sends_everybody_away_and_begins_there(desk: Bench) -> None:
    topic = await desk.topic("t-partition-0")
    places = await desk.published(topic, *[b"x"] * 5)
    a = await attached(topic, FAILOVER, name="a")
    b = await attached(topic, FAILOVER, name="b")
    await desk.dispatch()
    a.ack(*places)
    await topic.subscriptions["s"].seek(places[1])
    assert a.events == ["active", "closed"]
    assert b.events == ["passive", "closed"], "nobody becomes active on the way out"
    again = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    assert again.take() == places[2:]


async def test_reset_into_a_batch(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.append([b"batch"], [3], Outcome())
    await settled()
    await topic.subscription("s")
    await topic.subscriptions["s"].seek(START, (0, 0, 0b100, 3))
    a = await attached(topic, EXCLUSIVE)
    await desk.dispatch()
    assert a.bits == {(0, 0): 0b100}


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
async def test_a_batch_of_a_size_that_cannot_be(desk: Bench, size: int) -> None:
    """Clients say how large it is: no number of theirs may cost memory, or end anything."""
    topic = await desk.topic()
    topic.ledger.append([b"batch"], [3], Outcome())
    await settled()
    await topic.subscription("s", start=START)
    a = await attached(topic, SHARED)
    await desk.dispatch()
    tracemalloc.start()
    topic.subscriptions["s"].ack(a.consumer, [], [(0, 0, 0b110, size)])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
    assert topic.subscriptions["s"].cursor.acks.bits((0, 0)) == 0b110


async def test_a_seek_is_stored_before_anybody_is_sent_away() -> None:
    async with bench(sync_at_once=False) as desk:
        topic = await desk.topic()
        outcome = Outcome()
        topic.publish([b"x", b"y"], None, outcome)
        await settled()
        desk.ledgers.sync()
        a = await attached(topic, SHARED)
        await desk.dispatch()
        subscription = topic.subscriptions["s"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(subscription.seek, (0, 0))
            await settled()
            assert a.events == []
            a.ack((0, 1))  # about the time before the seek
            with pytest.raises(NotReady):
                await attached(topic, SHARED)
            with pytest.raises(SubscriptionBusy):
                await subscription.seek(START)
            desk.ledgers.sync()
        assert a.events == ["closed"]
        b = await attached(topic, SHARED)
        await desk.dispatch()
        assert b.got == [(0, 1)]
        assert (await desk.topic()).subscriptions["s"].cursor.mark_delete == (0, 0)


async def test_a_seek_that_cannot_be_stored_still_sends_everybody_away(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_asked: object) -> int:
        raise StorageFailed("no")

    topic = await desk.topic()
    a = await attached(topic, SHARED)
    desk.ledgers.create_failure = StorageFailed("no")
    monkeypatch.setattr(desk.metadata, "put", refuse)
    with pytest.raises(StorageFailed):
        await topic.subscriptions["s"].seek(START)
    assert a.events == ["closed"]
    await attached(topic, SHARED)


@pytest.mark.parametrize("kind", [SHARED, KEYED])
async def test_who_comes_next_gets_what_is_missing_between_too_many_acknowledgements(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, kind: SubscriptionType
) -> None:
    """Nobody else could make them fewer: nothing was ever delivered again."""
    monkeypatch.setattr("magnetar.core.ledger.cursor.cursor.HOLES_SAVED_MAX", 3)
    topic = await desk.topic(pause_on_ack_state=True)
    a = await attached(topic, kind, permits=7)
    places = await desk.published(topic, *[entry(key=b"k")] * 7)
    await desk.dispatch()
    a.ack(*places[1:6:2])
    places += await desk.published(topic, *[entry(key=b"k")] * 3)
    a.flow(10)
    await desk.dispatch()
    assert a.take() == places[:7], "nothing new meanwhile"
    topic.detach(a.consumer)
    b = await attached(topic, kind, permits=20)
    await desk.dispatch()
    assert b.take() == [*places[0:6:2], *places[6:]]


@pytest.mark.parametrize("end", ["delete", "close"])
async def test_a_seek_opens_nothing_that_has_ended_meanwhile(slow_desk: Bench, end: str) -> None:
    topic = await slow_desk.topic()
    await attached(topic, SHARED)
    subscription = topic.subscriptions["s"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(subscription.seek, START)
        await settled()
        nursery.start_soon(getattr(subscription, end))
        await settled()
        slow_desk.ledgers.sync()
    assert subscription.fenced
    with pytest.raises(NotReady):
        await attached(topic, SHARED)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("kind", [SHARED, KEYED, EXCLUSIVE])
async def test_a_seek_leaves_what_a_transaction_holds(
    desk: Bench, kind: SubscriptionType, committed: bool
) -> None:
    topic = await desk.topic()
    first, held, last = await desk.published(topic, b"a", b"b", b"c")
    a = await attached(topic, kind)
    await desk.dispatch()
    subscription = topic.subscriptions["s"]
    subscription.hold(a.consumer, (0, 7), [(held[0], held[1], held[1])], [])
    await subscription.seek(START)
    b = await attached(topic, kind)
    await desk.dispatch()
    assert b.take() == [first, last]
    await subscription.end_transaction((0, 7), committed=committed)
    await desk.dispatch()
    assert (held in b.take()) is not committed
    b.ack(first, last)
    assert subscription.cursor.backlog == (0 if committed else 1)


@pytest.mark.parametrize("committed", [True, False])
async def test_a_seek_passes_over_what_a_transaction_holds(desk: Bench, committed: bool) -> None:
    topic = await desk.topic()
    _, held, last = await desk.published(topic, b"a", b"b", b"c")
    a = await attached(topic, SHARED)
    await desk.dispatch()
    subscription = topic.subscriptions["s"]
    subscription.hold(a.consumer, (0, 7), [(held[0], held[1], held[1])], [])
    await subscription.seek(held)
    b = await attached(topic, SHARED)
    await desk.dispatch()
    await subscription.end_transaction((0, 7), committed=committed)
    await desk.dispatch()
    assert b.take() == [last]
    assert subscription.cursor.mark_delete == held


async def test_skip_counts_what_is_not_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    for _ in range(3):
        places = await desk.published(topic, *[b"x"] * 10)
    a = await attached(topic, SHARED, permits=0)
    subscription = topic.subscriptions["s"]
    subscription.skip(12)
    assert subscription.cursor.mark_delete == (1, 1)
    a.ack((1, 3))
    subscription.skip(2)
    assert subscription.cursor.mark_delete == (1, 4)
    subscription.skip(1000)
    assert subscription.cursor.mark_delete == places[-1]
    assert subscription.cursor.backlog == 0


async def test_expiry_is_counted_and_not_delivered(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 5)
    a = await attached(topic, EXCLUSIVE, permits=0)
    subscription = topic.subscriptions["s"]
    assert subscription.expire_to(places[2]) == 3
    assert subscription.expire_to(places[1]) == 0
    a.flow(10)
    await desk.dispatch()
    assert a.take() == places[3:]
    assert subscription.outflow().expired == 3


async def test_only_the_last_one_may_unsubscribe(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, FAILOVER, name="a")
    b = await attached(topic, FAILOVER, name="b")
    for each in (a, b):
        with pytest.raises(Invalid):
            topic.subscriptions["s"].may_unsubscribe(each.consumer)
    topic.detach(b.consumer)
    topic.subscriptions["s"].may_unsubscribe(a.consumer)


async def test_nothing_is_dispatched_where_nobody_is(desk: Bench) -> None:
    topic = await desk.topic()
    await topic.subscription("s")
    await desk.published(topic, b"x")
    assert desk.dirty == []
    assert not topic.subscriptions["s"].dispatch()


async def test_it_knows_when_its_mark_delete_position_moved(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"1", b"2", b"3", b"4", b"5")
    a = await attached(topic, EXCLUSIVE)
    subscription = topic.subscriptions["s"]

    def moved_at() -> int:
        desk.clock.forward(1)
        return subscription.last_mark_delete_ms

    assert moved_at() == 0
    a.ack(places[1])
    assert moved_at() == 0, "there is a hole before it"
    for move in (
        lambda: a.ack(places[0]),
        lambda: subscription.ack_to(a.consumer, places[2], None),
        lambda: subscription.skip(1),
        lambda: subscription.skip_to(places[4]),
    ):
        move()
        now_ms = desk.clock.wall_ms()
        assert moved_at() == now_ms
    a.ack(places[0])
    assert moved_at() == now_ms, "it was acknowledged before"


async def test_what_consumers_did_last_is_known_when_they_have_left(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, b"1")
    a = await attached(topic, SHARED)
    subscription = topic.subscriptions["s"]
    await desk.dispatch()
    desk.clock.forward(1)
    a.ack(places[0])
    seen = (a.consumer.last_flow_ms, a.consumer.last_consumed_ms, a.consumer.last_acked_ms)
    assert seen[2] == desk.clock.wall_ms() > seen[1] > 0
    topic.detach(a.consumer)
    b = await attached(topic, SHARED)
    subscription.disconnect_all()
    left = subscription.last_times()
    assert left == (b.consumer.last_flow_ms, *seen[1:])
