"""Who attaches again passes what the log's index says is delayed: it is not read before it is due.

Ledgers have ten entries, and so has a block of the index.
"""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from magnetar.core.kernel.completion import Completion
from magnetar.core.ledger.buckets.bucket import buckets_of
from magnetar.core.ledger.buckets.delayed_index import NOTED_BLOCKS
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.remaining_entries import RemainingEntries, encoded
from magnetar.core.policy.values import DelayedDelivery
from magnetar.core.testing.bench import Bench, log_reads
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.key_shared import KeyedDispatcher
from magnetar.core.topic.subscription.outstanding import INDEXED_MS, Outstanding
from magnetar.core.topic.subscription.shared import SharedDispatcher
from magnetar.core.topic.subscription.subscription import SubscriptionType

SHARED = SubscriptionType.SHARED
HOUR_MS = 3_600_000
BLOCK = 10
INDEXED = BLOCK * NOTED_BLOCKS
Read = list[Position]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Where anything was read from the log."""
    return log_reads(monkeypatch)


def out_of(topic: PersistentTopic) -> Outstanding:
    dispatcher = topic.subscriptions["s"].dispatcher
    assert isinstance(dispatcher, SharedDispatcher | KeyedDispatcher)
    return dispatcher.out


async def published(
    desk: Bench, topic: PersistentTopic, soon: dict[int, int | None]
) -> list[Position]:
    """A ledger's entries at a time. All are due in an hour, but for these, which are due after so
    many milliseconds, or at once.
    """
    now_ms = desk.clock.wall_ms()
    places: list[Position] = []
    for start in range(0, INDEXED + BLOCK, BLOCK):
        entries = []
        for number in range(start, start + BLOCK):
            delay_ms = soon.get(number, HOUR_MS)
            due_ms = None if delay_ms is None else now_ms + delay_ms
            entries.append(entry(b"%d" % number, key=b"%d" % number, deliver_at_ms=due_ms))
        places += await desk.published(topic, *entries)
    return places


async def indexed(
    desk: Bench, kind: SubscriptionType = SHARED, **soon: int | None
) -> tuple[PersistentTopic, ClientConsumer, list[Position]]:
    """A topic with all but the last block in its index, and its consumer."""
    topic = await desk.topic()
    client = await attached(topic, kind)
    places = await published(desk, topic, {int(key[1:]): delay for key, delay in soon.items()})
    await desk.dispatch()
    (bucket,) = buckets_of(topic.ledger.properties)
    assert bucket.blocks == NOTED_BLOCKS
    return topic, client, places


async def again(
    desk: Bench, topic: PersistentTopic, read: Read, kind: SubscriptionType = SHARED
) -> tuple[PersistentTopic, ClientConsumer]:
    """Unload it, load it, and attach."""
    await topic.close()
    read.clear()
    topic = await desk.topic()
    client = await attached(topic, kind)
    await desk.dispatch()
    return topic, client


async def later(desk: Bench, topic: PersistentTopic, seconds: float) -> None:
    desk.clock.forward(seconds)
    topic.subscriptions["s"].schedule()
    await desk.dispatch()


@pytest.mark.parametrize("kind", [SHARED, SubscriptionType.KEY_SHARED])
async def test_nothing_in_the_index_is_read_before_it_is_due(
    desk: Bench, read: Read, kind: SubscriptionType
) -> None:
    topic, _, places = await indexed(desk, kind)
    topic, a = await again(desk, topic, read, kind)
    out = out_of(topic)
    assert (a.take(), len(out.delayed), out.delayed.known) == ([], len(places), BLOCK)
    assert read == [places[INDEXED]], "the last block is not in it"
    await later(desk, topic, 3_600)
    assert sorted(a.take()) == places
    a.ack(*places)
    assert topic.subscriptions["s"].cursor.backlog == 0
    assert (len(out.delayed), out.pending) == (0, {})


async def test_who_leaves_and_comes_back(desk: Bench, read: Read) -> None:
    """It is the same process, and nothing was unloaded."""
    topic, a, places = await indexed(desk)
    assert a.consumer.subscription is not None
    topic.detach(a.consumer)
    read.clear()
    b = await attached(topic, SHARED)
    await desk.dispatch()
    assert (len(out_of(topic).delayed), b.take()) == (len(places), [])
    assert len(read) <= 1


async def test_what_is_acknowledged_or_not_delayed_among_them(desk: Bench, read: Read) -> None:
    topic, a, places = await indexed(desk, _5=None, _33=None, _200=None)
    ready = [places[5], places[33], places[200]]
    assert a.take() == ready
    a.ack(places[0], *places[7:12], places[33])
    topic, a = await again(desk, topic, read)
    assert a.take() == [places[5], places[200]]
    assert (a.redelivered, len(out_of(topic).delayed)) == ({}, len(places) - 3 - 6)
    await later(desk, topic, 3_600)
    gone = {places[0], *places[7:12], *ready}
    assert sorted(a.take()) == [place for place in places if place not in gone]


async def test_what_is_due_meanwhile_is_read_and_delivered(desk: Bench, read: Read) -> None:
    topic, _, places = await indexed(desk, _155=2 * INDEXED_MS)
    desk.clock.forward(2 * INDEXED_MS / 1000)
    topic, a = await again(desk, topic, read)
    assert a.take() == [places[155]]
    assert sorted(read) == [places[155], places[INDEXED]]


async def test_who_waits_for_less_than_a_minute_is_not_in_the_index(
    desk: Bench, read: Read
) -> None:
    topic, _, places = await indexed(desk, _155=INDEXED_MS - 1)
    topic, a = await again(desk, topic, read)
    assert read == [places[155], places[INDEXED]]
    await later(desk, topic, INDEXED_MS / 1000)
    assert a.take() == [places[155]]


async def test_what_a_transaction_holds_is_neither_read_nor_delayed(
    desk: Bench, read: Read
) -> None:
    topic, _, places = await indexed(desk)
    cursor = topic.subscriptions["s"].cursor
    ledger_id, entry_id = places[7]
    cursor.hold((0, 1), [(ledger_id, entry_id, entry_id)], [])
    await cursor.saved()
    topic, a = await again(desk, topic, read)
    assert places[7] not in out_of(topic).delayed
    assert read == [places[INDEXED]]
    await topic.subscriptions["s"].end_transaction((0, 1), committed=False)
    await desk.dispatch()
    assert (a.take(), len(out_of(topic).delayed)) == ([], len(places))
    await later(desk, topic, 3_600)
    assert sorted(a.take()) == places


async def test_new_subscriptions_have_it_too(desk: Bench, read: Read) -> None:
    topic, _, places = await indexed(desk)
    read.clear()
    b = await attached(topic, SHARED, subscription="new")
    await desk.dispatch()
    assert (b.take(), read) == ([], []), "the last block is in the cache"
    dispatcher = topic.subscriptions["new"].dispatcher
    assert isinstance(dispatcher, SharedDispatcher)
    assert len(dispatcher.out.delayed) == len(places)


async def test_topics_without_delayed_delivery_do_not_ask(desk: Bench, read: Read) -> None:
    topic, _, places = await indexed(desk)
    await topic.close()
    topic = await desk.topic(delayed_delivery=DelayedDelivery(active=False))
    a = await attached(topic, SHARED)
    await desk.dispatch()
    assert a.take() == places


async def test_a_ledger_that_compaction_has_rewritten_is_read(desk: Bench, read: Read) -> None:
    """Entries of it are gone, of which the index does not know."""
    topic, _, places = await indexed(desk)
    ledger = topic.ledger
    segment = ledger.chain.segments[3]
    writer = await removal.create_beside(ledger)
    kept = [place for place in places if place[0] == segment.ledger_id][::2]
    stored = Completion[None]()
    payloads = desk.ledgers.ledgers[segment.ledger_id].entries[::2]
    ids = encoded([entry_id for _, entry_id in kept])
    writer.append([*payloads, *ids], stored.done)
    await stored.result()
    await writer.close()
    remaining = RemainingEntries(writer.ledger_id, 0, [entry_id for _, entry_id in kept])
    left = replace(segment, entries=kept[-1][1] + 1, remaining=remaining)
    await removal.replace(ledger, {segment.ledger_id: left}, 0, lambda: None)
    topic, a = await again(desk, topic, read)
    assert len(out_of(topic).delayed) == len(places) - BLOCK + len(kept)
    assert kept[0] in read
    await later(desk, topic, 3_600)
    assert sorted(set(places) - set(a.take())) == sorted(
        {place for place in places if place[0] == segment.ledger_id} - set(kept)
    )


async def test_what_is_due_when_they_attach_comes_in_order(desk: Bench, read: Read) -> None:
    """Of one key, before what was published after it."""
    topic, _, places = await indexed(desk, SubscriptionType.KEY_SHARED)
    desk.clock.forward(2 * HOUR_MS / 1000)
    places += await desk.published(topic, entry(b"newer", key=b"300"))
    topic, a = await again(desk, topic, read, SubscriptionType.KEY_SHARED)
    assert a.take() == places


async def chunked(
    desk: Bench, first: int, dues_ms: dict[int, int]
) -> tuple[PersistentTopic, list[Position]]:
    """A topic with a message in two chunks, in two blocks; nothing is in the cache."""
    topic = await desk.topic()
    await attached(topic, SHARED)
    topic.ledger.cache_tail(False)
    chunks = {first: (b"u", 0, 2), first + 1: (b"u", 1, 2)}
    now_ms, places = desk.clock.wall_ms(), list[Position]()
    for start in range(0, INDEXED + BLOCK, BLOCK):
        places += await desk.published(topic, *[
            entry(deliver_at_ms=now_ms + dues_ms.get(number, HOUR_MS), chunk=chunks.get(number))
            for number in range(start, start + BLOCK)
        ])  # fmt: skip
    await desk.dispatch()
    return topic, places


async def test_a_chunk_that_is_read_while_its_first_one_is_in_the_index(
    desk: Bench, read: Read
) -> None:
    topic, places = await chunked(desk, INDEXED - 1, {})
    topic, a = await again(desk, topic, read)
    assert topic.subscriptions["s"].cursor.backlog == len(places)
    await later(desk, topic, 3_600)
    assert a.take() == places


async def test_chunks_that_a_transaction_holds(desk: Bench, read: Read) -> None:
    """They come back in order, and once, when it is aborted."""
    topic, places = await chunked(desk, INDEXED - 1, {INDEXED - 1: 90_000, INDEXED: 90_000})
    chunks = places[INDEXED - 1 : INDEXED + 1]
    cursor = topic.subscriptions["s"].cursor
    cursor.hold((0, 1), [(ledger_id, entry_id, entry_id) for ledger_id, entry_id in chunks], [])
    await cursor.saved()
    desk.clock.forward(100)
    topic, a = await again(desk, topic, read)
    assert a.take() == []
    assert not any(place in out_of(topic).delayed for place in chunks)
    await topic.subscriptions["s"].end_transaction((0, 1), committed=False)
    await desk.dispatch()
    assert a.take() == chunks
    assert not any(place in out_of(topic).delayed for place in chunks)
    a.ack(*chunks)
    assert (out_of(topic).unacked, out_of(topic).pending) == (0, {})


async def test_a_later_chunk_that_is_acknowledged_is_not_waited_for(
    desk: Bench, read: Read
) -> None:
    topic, places = await chunked(desk, INDEXED - 1, {})
    ledger_id, entry_id = places[INDEXED]
    topic.subscriptions["s"].cursor.ack_range(ledger_id, entry_id, entry_id)
    topic, _ = await again(desk, topic, read)
    assert len(out_of(topic).delayed) == len(places) - 1


async def test_chunks_that_are_learned_in_another_order(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """The block of the second is read before that of the first."""
    topic, places = await chunked(desk, 99, {105: 100_000, 99: 200_000, 100: 200_000})
    out = out_of(topic)
    while out.delayed.known:
        out.delayed.put_off()
    (a,) = topic.subscriptions["s"].consumers
    client = a.sink
    assert isinstance(client, ClientConsumer)
    got: list[Position] = []
    for _ in range(4):
        desk.clock.forward(60)
        await trio.sleep(60)
        await later(desk, topic, 0)
        got += client.take()
    assert got == [places[105], places[99], places[100]]


async def test_a_chunk_without_a_first_one_is_acknowledged_when_nothing_is_delayed_before_it(
    desk: Bench, autojump_clock: MockClock
) -> None:
    topic = await desk.topic()
    a = await attached(topic, SHARED)
    due_ms = desk.clock.wall_ms() + 5_000
    lone = entry(deliver_at_ms=due_ms, chunk=(b"u", 1, 3))
    places = await desk.published(topic, entry(deliver_at_ms=due_ms), lone, lone)
    await desk.dispatch()
    for _ in range(8):
        desk.clock.forward(1)
        await trio.sleep(1)
        await desk.dispatch()
    assert a.take() == places[:1]
    a.ack(places[0])
    assert topic.subscriptions["s"].cursor.backlog == 0
