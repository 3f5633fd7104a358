"""The books of what is out, for themselves."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.bench import Bench, log_reads, settled
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest
from magnetar.core.topic.subscription.delayed.deliveries import UNREADABLE_MS
from magnetar.core.topic.subscription.key_shared import KeyedDispatcher
from magnetar.core.topic.subscription.outstanding import (
    WOKEN_ENTRIES_MAX,
    Outstanding,
    SharedLimits,
)
from magnetar.core.topic.subscription.replay import Replay
from magnetar.core.topic.subscription.shared import SharedDispatcher
from magnetar.core.topic.subscription.source import RETRY_SECONDS
from magnetar.core.topic.subscription.subscription import SubscriptionType


async def books(desk: Bench, **limits: int) -> tuple[Outstanding, Consumer]:
    ledger = (await desk.topic()).ledger
    await desk.published(await desk.topic("other"), b"x")
    cursor = Cursor(desk.storage, ledger, "s", (-1, -1), durable=False)
    out = Outstanding(cursor, desk.env, SharedLimits(**limits), lambda: None, Replay())
    consumer = Consumer(1, ConsumerRequest(name="c"), ClientConsumer(), 0, 0)
    return out, consumer


def out_of(topic: PersistentTopic) -> Outstanding:
    dispatcher = topic.subscriptions["s"].dispatcher
    assert isinstance(dispatcher, SharedDispatcher | KeyedDispatcher)
    return dispatcher.out


def run(count: int, counts: list[int] | None = None) -> Slice:
    return Slice(0, 0, [b"x"] * count, counts)


async def test_out_and_done_with(desk: Bench) -> None:
    out, consumer = await books(desk)
    out.send(consumer, run(3, [1, 5, 1]), None)
    assert (out.unacked, consumer.unacked, len(out.pending)) == (7, 7, 3)
    assert out.acked(0, 1, 1) == 5
    assert out.acked(0, 1, 1) == 0
    assert out.acked(0, 0, 99) == 2
    assert (out.unacked, consumer.unacked, out._sizes) == (0, 0, {})


async def test_blocked_at_the_limit_and_free_at_half_of_it(desk: Bench) -> None:
    out, consumer = await books(desk, unacked_max=4)
    out.send(consumer, run(4), None)
    assert out.blocked
    out.acked(0, 0, 0)
    assert out.blocked
    out.come_back((0, 1))
    assert not out.blocked
    out.set_limits(SharedLimits(unacked_max=2))
    assert out.blocked
    out.set_limits(SharedLimits(unacked_max=0))
    assert not out.blocked


async def test_what_comes_back_keeps_its_count_until_it_is_done_with(desk: Bench) -> None:
    out, consumer = await books(desk)
    for deliveries in range(3):
        out.send(consumer, run(1), None)
        out.come_back((0, 0))
        assert out.deliveries == {(0, 0): deliveries + 1}
    out.acked(0, 0, 0)
    assert (out.deliveries, len(out.replay)) == ({}, 0)


async def test_what_is_passed_is_done_with_wherever_it_is(desk: Bench) -> None:
    out, consumer = await books(desk)
    out.send(consumer, run(4), None)
    out.come_back((0, 0))
    out.pending.pop((0, 1))
    out.delayed.add((0, 1), 10)
    out.passed((0, 2))
    assert list(out.pending) == [(0, 3)]
    assert (len(out.replay), len(out.delayed), out.deliveries) == (0, 0, {})


async def test_what_is_due_joins_replay_while_there_is_room(desk: Bench) -> None:
    out, consumer = await books(desk, replay_max=2)
    for entry_id in range(5):
        out.delayed.add((0, entry_id), 0)
    assert out.wake_delayed()
    assert (len(out.replay), len(out.delayed), out.is_full((0, 9))) == (2, 3, True)
    assert not out.wake_delayed(), "no room"
    out.send(consumer, run(2), None)
    assert out.wake_delayed()
    assert (len(out.replay), len(out.delayed)) == (2, 1)


async def test_many_that_are_due_at_once_are_woken_in_turns(desk: Bench) -> None:
    """Whether or not anybody takes them: a thousand wait for nothing."""
    ledger = (await desk.topic()).ledger
    cursor = Cursor(desk.storage, ledger, "s", (-1, -1), durable=False)
    scheduled: list[int] = []
    out = Outstanding(cursor, desk.env, SharedLimits(), lambda: scheduled.append(1), Replay())
    for entry_id in range(WOKEN_ENTRIES_MAX + 5):
        out.delayed.add((0, entry_id), 0)
    assert out.wake_delayed()
    assert (len(out.replay), len(out.delayed), len(scheduled)) == (WOKEN_ENTRIES_MAX, 5, 1)
    assert out.wake_delayed()
    assert (len(out.replay), len(out.delayed)) == (WOKEN_ENTRIES_MAX + 5, 0)
    assert not out.wake_delayed()
    assert len(scheduled) == 1


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("cached", [True, False])
async def test_delayed_messages_beyond_what_is_known_hold_up_no_others(
    desk: Bench, kind: SubscriptionType, cached: bool
) -> None:
    """Their times are read again, from storage too: each comes once, when it is due."""
    topic = await desk.topic(max_delayed_per_subscription=3)
    a = await attached(topic, kind, permits=100)
    topic.ledger.cache_tail(cached)
    now_ms = desk.clock.wall_ms()
    delays_ms = [100_000 * (number % 3 + 1) for number in range(9)]
    entries = [entry(deliver_at_ms=now_ms + delay_ms) for delay_ms in delays_ms]
    places = await desk.published(topic, *entries, b"at once")
    await desk.dispatch()
    out = out_of(topic)
    assert a.take() == [places[9]]
    assert (len(out.delayed), out.delayed.known <= 3) == (9, True)
    a.ack(places[9], places[1])
    for due, left in enumerate((5, 3, 0)):
        desk.clock.forward(100)
        topic.subscriptions["s"].schedule()
        await desk.dispatch()
        assert sorted(a.take()) == [place for place in places[due:9:3] if place != places[1]]
        assert (len(out.delayed), out.delayed.known <= 3) == (left, True)
    a.ack(*places)
    assert topic.subscriptions["s"].cursor.backlog == 0
    assert (desk.env.delayed.times, out._delayed_source._loaded) == (0, None)


async def test_what_was_put_off_and_trimmed_is_not_waited_for(desk: Bench) -> None:
    topic = await desk.topic(max_delayed_per_subscription=1)
    a = await attached(topic, SubscriptionType.SHARED, permits=100)
    soon = entry(deliver_at_ms=desk.clock.wall_ms() + 100_000)
    gone = await desk.published(topic, *[soon] * 10)
    places = await desk.published(topic, *[soon] * 5)
    await desk.dispatch()
    assert len(out_of(topic).delayed) == 15
    await topic.ledger.trim([gone[0][0]])
    desk.clock.forward(100)
    topic.subscriptions["s"].schedule()
    await desk.dispatch()
    assert sorted(a.take()) == places
    assert (len(out_of(topic).delayed), desk.env.delayed.times) == (0, 0)


async def all_put_off(
    desk: Bench, entries: int
) -> tuple[ClientConsumer, Outstanding, list[Position]]:
    """So many entries that are due in 100 s, all of them put off."""
    topic = await desk.topic()
    a = await attached(topic, SubscriptionType.SHARED, permits=100)
    soon = entry(deliver_at_ms=desk.clock.wall_ms() + 100_000)
    topic.ledger.cache_tail(False)
    places = await desk.published(topic, *[soon] * entries)
    await desk.dispatch()
    out = out_of(topic)
    while out.delayed.known:
        out.delayed.put_off()
    assert len(out.delayed) == entries
    return a, out, places


async def test_who_cannot_be_read_holds_up_no_others(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """Neither those of its block, nor later blocks; it is tried again."""
    a, out, places = await all_put_off(desk, 5)
    ledger_id, entry_id = places[1]
    damaged = desk.ledgers.ledgers[ledger_id].damaged
    damaged.add(entry_id)
    desk.clock.forward(100)
    out._schedule()
    for _ in range(10):
        await desk.dispatch()
        await trio.sleep(RETRY_SECONDS)
    assert sorted(a.take()) == [place for place in places if place != places[1]]
    assert len(out.delayed) == 1
    damaged.clear()
    desk.clock.forward(UNREADABLE_MS / 1000)
    out._schedule()
    for _ in range(10):
        await desk.dispatch()
        await trio.sleep(RETRY_SECONDS)
    assert (a.take(), len(out.delayed)) == ([places[1]], 0)


async def test_many_who_cannot_be_read_hold_up_no_others(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """Nobody waits for one after the other: the log knows how many follow that are lost as well."""
    a, out, places = await all_put_off(desk, 60)
    desk.ledgers.ledgers[places[0][0]].damaged.update(entry_id for _, entry_id in places[:50])
    desk.clock.forward(100)
    out._schedule()
    began = trio.current_time()
    while len(a.got) < 10:
        await desk.dispatch()
        await trio.sleep(0.01)
    assert trio.current_time() - began < 5 * RETRY_SECONDS
    assert sorted(a.take()) == places[50:]
    assert len(out.delayed) == 50


async def dispatched_for(desk: Bench, out: Outstanding, seconds: int) -> None:
    """Both clocks run, and something makes the dispatcher look each 10 ms."""
    for _ in range(100 * seconds):
        out._schedule()
        await desk.dispatch()
        await trio.sleep(0.01)
        desk.clock.forward(0.01)


async def test_what_is_damaged_here_and_there_is_read_each_ten_seconds(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    reads = log_reads(monkeypatch)
    a, out, places = await all_put_off(desk, 30)
    bad = [places[3], places[7], places[20]]
    desk.ledgers.ledgers[places[0][0]].damaged.update(entry_id for _, entry_id in bad)
    desk.clock.forward(100)
    await dispatched_for(desk, out, seconds=25)
    assert sorted(a.take()) == [place for place in places if place not in bad]
    assert all(2 <= reads.count(place) <= 4 for place in bad), reads


async def test_while_storage_fails_it_is_asked_seldom(
    desk: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: MockClock,
) -> None:
    a, out, places = await all_put_off(desk, 3_000)

    async def away(*_asked: object) -> Slice:
        raise StorageFailed("no bookies")

    with monkeypatch.context() as patched:
        patched.setattr(ManagedLedger, "read", away)
        desk.clock.forward(100)
        await dispatched_for(desk, out, seconds=30)
        assert 3 <= caplog.text.count("cannot read") <= 15
    a.flow(5_000)
    await dispatched_for(desk, out, seconds=25)
    assert sorted(a.take()) == places


async def test_who_has_left_waits_for_nothing(desk: Bench, autojump_clock: MockClock) -> None:
    a, out, _places = await all_put_off(desk, 3)
    await settled()
    assert out._watching
    assert a.consumer.subscription is not None
    a.consumer.subscription.detach(a.consumer)
    await settled()
    assert not out._watching


async def test_nothing_is_held_when_the_last_consumer_leaves_during_a_read(desk: Bench) -> None:
    a, out, _places = await all_put_off(desk, 3)
    desk.clock.forward(100)
    assert not out.wake_delayed(), "it is being read"
    assert a.consumer.subscription is not None
    a.consumer.subscription.detach(a.consumer)
    await settled()
    assert (len(out.delayed), len(out.replay), desk.env.loaded.held_bytes) == (0, 0, 0)


async def test_acknowledged_while_it_is_read_again(desk: Bench) -> None:
    a, out, places = await all_put_off(desk, 3)
    desk.clock.forward(100)
    assert not out.wake_delayed(), "it is being read"
    a.ack(places[0], places[2])
    await desk.dispatch()
    assert (a.take(), len(out.delayed)) == ([places[1]], 0)


async def test_times_that_are_not_known_are_asked_for_before_they_are_due(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """An alarm wakes the subscription to read them, and one when they are due."""
    a, out, places = await all_put_off(desk, 4)
    out.wake_delayed()
    for seconds, known in ((85, 0), (10, 4), (4, 4)):
        desk.clock.forward(seconds)
        await trio.sleep(seconds)
        await desk.dispatch()
        assert (out.delayed.known, a.take()) == (known, [])
    desk.clock.forward(2)
    await trio.sleep(2)
    await desk.dispatch()
    assert sorted(a.take()) == places


async def test_nothing_new_is_read_while_acknowledgements_outgrow_what_is_stored(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("magnetar.core.ledger.cursor.cursor.HOLES_SAVED_MAX", 2)
    topic = await desk.topic()
    await desk.published(topic, *[b"x"] * 6)
    cursor = Cursor(desk.storage, topic.ledger, "s", (-1, -1), durable=False)
    ledger_id = topic.ledger.chain.confirmed[0]
    out, careless = [
        Outstanding(cursor, desk.env, SharedLimits(pauses_unsaved=pauses), lambda: None, Replay())
        for pauses in (True, False)
    ]
    read = ledger_id, 5
    cursor.ack_range(ledger_id, 2, 2)
    assert not out.is_full(read)
    cursor.ack_range(ledger_id, 4, 4)
    assert (out.is_full(read), careless.is_full(read)) == (True, False)
    assert not out.is_full((ledger_id, 3)), "what is missing there makes the ranges fewer"
    cursor.ack_range(ledger_id, 3, 3)
    assert not out.is_full(read)
