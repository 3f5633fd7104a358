"""Shared: turns, permits, what comes back, limits, delays, chunks."""

import itertools

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import Bench, Outcome, settled
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.outstanding import SharedLimits
from magnetar.core.topic.subscription.shared import SharedDispatcher
from magnetar.core.topic.subscription.subscription import PersistentSubscription, SubscriptionType

SHARED = SubscriptionType.SHARED


def out_of(topic: PersistentTopic, name: str = "s") -> SharedDispatcher:
    dispatcher = topic.subscriptions[name].dispatcher
    assert isinstance(dispatcher, SharedDispatcher)
    return dispatcher


def subscription_of(topic: PersistentTopic, name: str = "s") -> PersistentSubscription:
    return topic.subscriptions[name]


async def test_turns_are_taken_and_permits_kept(desk: Bench) -> None:
    topic = await desk.topic()
    a, b = [await attached(topic, SHARED, name=name, permits=30) for name in "ab"]
    places = await desk.published(topic, *[b"x"] * 70)
    await desk.dispatch()
    assert (len(a.got), len(b.got)) == (30, 30)
    assert sorted(a.got + b.got) == places[:60]
    a.flow(5)
    b.flow(1)
    await desk.dispatch()
    assert (len(a.got), len(b.got)) == (35, 31)
    assert out_of(topic).unacked == 66 == a.consumer.unacked + b.consumer.unacked


async def test_the_best_priority_first(desk: Bench) -> None:
    topic = await desk.topic()
    low = await attached(topic, SHARED, name="low", priority=1, permits=10)
    high = await attached(topic, SHARED, name="high", priority=0, permits=3)
    await desk.published(topic, *[b"x"] * 5)
    await desk.dispatch()
    assert (len(high.got), len(low.got)) == (3, 2)


async def test_what_comes_back_goes_first_and_is_counted(desk: Bench) -> None:
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 4)
    a = await attached(topic, SHARED, permits=2)
    await desk.dispatch()
    assert a.take() == places[:2]
    a.nack(places[1])
    a.nack(places[3])  # is not out with anybody
    a.flow(2)
    await desk.dispatch()
    assert a.take() == [places[1], places[2]]
    assert a.redelivered == {places[1]: 1}
    a.nack(places[1])
    a.flow(1)
    await desk.dispatch()
    assert a.redelivered == {places[1]: 2}


async def test_a_consumer_that_leaves_gives_everything_back(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, name="a", permits=10)
    places = await desk.published(topic, *[b"x"] * 6)
    await desk.dispatch()
    a.ack(places[0], places[2])
    b = await attached(topic, SHARED, name="b")
    topic.detach(a.consumer)
    await desk.dispatch()
    assert b.take() == [places[1], *places[3:]]
    assert set(b.redelivered.values()) == {1}
    b.ack(*places[1:])
    out = out_of(topic).out
    assert (out.unacked, len(out.pending), len(out.deliveries)) == (0, 0, 0)
    assert topic.subscriptions["s"].cursor.backlog == 0


async def test_the_last_one_out_leaves_nothing_in_memory(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED)
    places = await desk.published(topic, entry(deliver_at_ms=desk.clock.wall_ms() + 10**6), b"x")
    await desk.dispatch()
    dispatcher = out_of(topic)
    topic.detach(a.consumer)
    out = dispatcher.out
    kept = (out.pending, out.deliveries, out.replay, out.delayed)
    assert [len(each) for each in kept] == [0, 0, 0, 0]
    b = await attached(topic, SHARED)
    await desk.dispatch()
    assert b.take() == [places[1]]
    assert b.redelivered == {}


async def test_acknowledged_while_it_waits_to_be_sent_again(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=3)
    places = await desk.published(topic, *[b"x"] * 4)
    await desk.dispatch()
    a.take()
    a.nack()
    a.ack(places[1])
    a.flow(10)
    await desk.dispatch()
    assert a.take() == [places[0], places[2], places[3]]
    assert len(out_of(topic).out.replay) == 0


async def test_somebody_elses_message_may_be_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, name="a", permits=1)
    places = await desk.published(topic, b"x")
    await desk.dispatch()
    b = await attached(topic, SHARED, name="b")
    b.ack(places[0])
    assert a.consumer.unacked == 0
    a.nack(places[0])
    await desk.dispatch()
    assert b.take() == []


async def test_batches_in_part(desk: Bench) -> None:
    topic = await desk.topic()
    topic.ledger.append([b"a", b"b"], [4, 1], Outcome())
    a = await attached(topic, SHARED)
    await desk.dispatch()
    assert a.consumer.unacked == 5
    a.ack_bits((0, 0), 0b0110, 4)
    assert a.consumer.unacked == 3
    a.nack((0, 0))
    assert a.consumer.unacked == 1
    await desk.dispatch()
    assert a.bits == {(0, 0): 0b0110}
    assert (a.consumer.unacked, a.consumer.permits) == (3, 1000 - 5 - 2)
    a.ack_bits((0, 0), 0, 4)
    a.ack((0, 1))
    assert (a.consumer.unacked, out_of(topic).unacked) == (0, 0)
    assert topic.subscriptions["s"].cursor.mark_delete == (0, 1)


async def test_too_much_unacknowledged_blocks_the_consumer_and_keeps_its_permits(
    desk: Bench,
) -> None:
    topic = await desk.topic(max_unacked_per_consumer=4)
    a = await attached(topic, SHARED, permits=4)
    places = await desk.published(topic, *[b"x"] * 10)
    await desk.dispatch()
    assert len(a.got) == 4
    a.flow(100)
    await desk.dispatch()
    assert len(a.got) == 4
    assert a.consumer.blocked
    a.ack(places[0])
    await desk.dispatch()
    assert len(a.got) == 4, "half of them first"
    a.ack(places[1])
    await desk.dispatch()
    assert a.got == places
    assert a.consumer.blocked, "permits may be overdrawn in one go: eight are out"


async def test_too_much_unacknowledged_blocks_the_subscription(desk: Bench) -> None:
    topic = await desk.topic(max_unacked_per_subscription=4)
    a = await attached(topic, SHARED, name="a", permits=2)
    b = await attached(topic, SHARED, name="b", permits=2)
    places = await desk.published(topic, *[b"x"] * 10)
    await desk.dispatch()
    a.flow(2)
    b.flow(2)
    await desk.dispatch()
    assert len(a.got) + len(b.got) == 4
    assert out_of(topic).out.blocked
    a.ack(*a.got)
    await desk.dispatch()
    assert len(a.got) + len(b.got) > 4
    assert sorted(a.got + b.got) == places[: len(a.got) + len(b.got)]


async def test_limits_change_for_those_who_are_here(desk: Bench) -> None:
    topic = await desk.topic(max_unacked_per_consumer=2)
    a = await attached(topic, SHARED, permits=2)
    places = await desk.published(topic, *[b"x"] * 4)
    await desk.dispatch()
    a.flow(2)
    await desk.dispatch()
    assert a.got == places[:2]
    topic.set_policies((await desk.topic("u", max_unacked_per_consumer=0)).policies)
    await desk.dispatch()
    assert a.got == places
    topic.set_policies((await desk.topic("v", max_unacked_per_subscription=3)).policies)
    assert out_of(topic).out.blocked


async def test_delayed_messages_wait_for_their_time(desk: Bench, autojump_clock: MockClock) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=10)
    now_ms = desk.clock.wall_ms()
    late, later = (entry(deliver_at_ms=now_ms + ms) for ms in (2000, 5000))
    places = await desk.published(topic, later, late, b"x")
    await desk.dispatch()
    assert a.take() == [places[2]]
    assert len(out_of(topic).out.delayed) == 2
    desk.clock.forward(3)
    await trio.sleep(3)
    await desk.dispatch()
    assert a.take() == [places[1]]
    desk.clock.forward(3)
    await trio.sleep(3)
    await desk.dispatch()
    assert a.take() == [places[0]]
    assert a.redelivered == {}, "it was not delivered before"
    a.ack(*places)
    assert topic.subscriptions["s"].cursor.backlog == 0


async def test_one_task_waits_for_all_that_are_delayed(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """Each is due before the one that was read before it."""
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=100)
    now_ms, before = desk.clock.wall_ms(), trio.lowlevel.current_statistics().tasks_living
    places = []
    for number in range(20):
        places += await desk.published(topic, entry(deliver_at_ms=now_ms + 20_000 - number))
        await desk.dispatch()
    assert trio.lowlevel.current_statistics().tasks_living == before + 1
    desk.clock.forward(20)
    await trio.sleep(20)
    await desk.dispatch()
    assert sorted(a.take()) == places
    await settled()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_who_is_delayed_after_the_clock_was_set_is_on_time(
    desk: Bench, autojump_clock: MockClock
) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=100)
    await desk.published(topic, entry(deliver_at_ms=desk.clock.wall_ms() + 5_000_000))
    await desk.dispatch()
    await trio.sleep(1)
    desk.clock.forward(200)
    (place,) = await desk.published(topic, entry(deliver_at_ms=desk.clock.wall_ms() + 500))
    await desk.dispatch()
    desk.clock.forward(0.5)
    await trio.sleep(0.5)
    await desk.dispatch()
    assert a.take() == [place]


async def test_many_that_are_due_at_once_pass_through_replay_in_portions(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=100)
    out = out_of(topic).out
    out.set_limits(SharedLimits(replay_max=4))
    soon = desk.clock.wall_ms() + 1_000
    places = await desk.published(topic, *[entry(deliver_at_ms=soon)] * 20)
    await desk.dispatch()
    assert (len(out.delayed), a.take()) == (20, [])
    desk.clock.forward(2)
    topic.subscriptions["s"].schedule()
    await desk.dispatch()
    assert a.take() == places
    assert (len(out.replay), len(out.delayed), sorted(out.pending)) == (0, 0, places)


async def test_chunks_of_one_message_go_to_one_consumer(desk: Bench) -> None:
    topic = await desk.topic()
    clients = [await attached(topic, SHARED, name=name, permits=5) for name in "abc"]
    chunks = [entry(chunk=(uuid, i, 4)) for i in range(4) for uuid in (b"u", b"v", b"w")]
    await desk.published(topic, *chunks)
    await desk.dispatch()
    owners = {
        uuid: {i for i, c in enumerate(clients) if any(uuid in p for p in c.payloads)}
        for uuid in (b"\x01u", b"\x01v", b"\x01w")
    }
    assert all(len(found) == 1 for found in owners.values()), owners
    assert sum(len(client.got) for client in clients) == 12


@pytest.mark.parametrize("ahead_ms", range(1, 30))
async def test_chunks_that_are_due_while_they_are_dealt_go_to_one_consumer(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    topic = await desk.topic()
    clients = [await attached(topic, SHARED, name=name) for name in "ab"]
    start_ms, looks = desk.clock.wall_ms(), itertools.count()
    monkeypatch.setattr(desk.clock, "wall_ms", lambda: start_ms + next(looks))
    due_ms = start_ms + ahead_ms
    chunks = [entry(deliver_at_ms=due_ms, chunk=(b"u", at, 2)) for at in range(2)]
    places = await desk.published(topic, *chunks)
    while not any(client.got for client in clients):
        await desk.dispatch()
        topic.subscriptions["s"].schedule()
    await desk.dispatch()
    assert sorted(client.got for client in clients) == [[], places]


async def test_a_chunk_whose_first_nobody_has_is_acknowledged(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED)
    places = await desk.published(topic, entry(chunk=(b"u", 1, 2)), b"x")
    await desk.dispatch()
    assert a.take() == [places[1]]
    a.ack(places[1])
    assert topic.subscriptions["s"].cursor.backlog == 0


async def test_skipped_messages_are_out_with_nobody(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED, permits=4)
    places = await desk.published(topic, *[b"x"] * 8)
    await desk.dispatch()
    a.nack(places[1])
    subscription_of(topic).skip_to(places[5])
    out = out_of(topic).out
    assert (out.unacked, a.consumer.unacked, len(out.replay), len(out.deliveries)) == (0, 0, 0, 0)
    a.take()
    a.flow(10)
    await desk.dispatch()
    assert a.take() == places[6:]


async def test_whatever_happens_every_message_is_acknowledged_once_and_none_is_lost(
    desk: Bench,
) -> None:
    """Consumers come, take, give back and leave in a fixed disorder."""
    topic = await desk.topic()
    places = await desk.published(topic, *[b"x"] * 60)
    clients: list[ClientConsumer] = []
    acked: set[Position] = set()
    for step in range(200):
        match step * 7 % 11:
            case 0 | 1:
                clients.append(await attached(topic, SHARED, name=f"c{step}", permits=step % 9))
            case 2 if len(clients) > 1:
                gone = clients.pop(step % len(clients))
                topic.detach(gone.consumer)
            case 3 | 4 if clients:
                clients[step % len(clients)].nack()
            case 5 | 6 | 7 if clients:
                client = clients[step % len(clients)]
                for position in client.take()[::2]:
                    client.ack(position)
                    acked.add(position)
            case _ if clients:
                clients[step % len(clients)].flow(step % 5 + 1)
        await desk.dispatch()
        dispatcher = out_of(topic)
        assert dispatcher.unacked == sum(client.consumer.unacked for client in clients)
        assert dispatcher.unacked == len(dispatcher.out.pending)
    while topic.subscriptions["s"].cursor.backlog:
        clients[0].nack()
        clients[0].flow(100)
        await desk.dispatch()
        for client in clients:
            taken = client.take()
            client.ack(*taken)
            acked.update(taken)
            client.nack()
    assert acked == set(places)
