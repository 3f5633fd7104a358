"""A feed: entries in every state of theirs, offered in order to who reads."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest
import trio

from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.mqtt.run import StoredPublish
from magnetar.core.entry.mqtt.segments import PublishSegment
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import NO_AGE, Bench, settled, stored
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.mqtt.delivery.feed import (
    ENTRIES_PER_TURN,
    OFFERS_PER_TURN,
    Feed,
    FeedReader,
)
from magnetar.wire.mqtt.delivery.matcher import Grant, Matcher, TopicSubscription
from magnetar.wire.mqtt.delivery.stored_messages import Messages

NOW = 1_700_000_000_000


class Reader:
    """Takes all that it is offered."""

    client_id = b"reader"

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.flushes = 0

    def offer(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        grant: Grant,
    ) -> None:
        self.got += [packet.payload for packet in messages.packets_of(segment)]

    def send_unconfirmed(self, messages: Messages, packet: StoredPublish, grant: Grant) -> bool:
        raise AssertionError("it is offered segments")

    def flush(self) -> None:
        self.flushes += 1

    def has_room(self) -> None:
        """It never lags."""


class Desk:
    def __init__(self, bench: Bench, topic: PersistentTopic) -> None:
        self.bench, self.topic, self.reader = bench, topic, Reader()
        self.matcher: Matcher[FeedReader] = Matcher()
        self.matcher.add(self.reader, TopicSubscription("t", 1))
        self.feed = Feed(topic.name, self.matcher, lambda _key: b"t", bench.env.spawn)
        self.feed.attach(topic)
        self.feed.join(self.reader)

    async def publish(self, *values: bytes) -> None:
        entries = [kafka.entry_of([Record(0, NOW, None, value)], 0, NOW, "p") for value in values]
        await stored(self.topic.ledger, *entries)
        await settled()


@pytest.fixture
async def desk(nursery: trio.Nursery) -> Desk:
    bench = Bench(nursery, NO_AGE, sync_at_once=True)
    return Desk(bench, await bench.topic())


async def test_entries_of_all_protocols_in_their_order(desk: Desk) -> None:
    await desk.publish(b"0", b"1")
    await desk.publish(b"2")
    assert desk.reader.got == [b"0", b"1", b"2"]
    assert desk.reader.flushes == 3


async def test_more_than_one_turn_and_what_is_not_in_memory(desk: Desk) -> None:
    values = [b"%d" % number for number in range(3 * ENTRIES_PER_TURN)]
    desk.bench.cache.bytes_max = 200
    await desk.publish(*values)
    assert desk.reader.got == values


@pytest.mark.parametrize("cache", [0, 1_000_000])
async def test_other_tasks_run_between_offers_to_many(desk: Desk, cache: int) -> None:
    """A burst is offered in turns of as many offers as there may be, whoever has stored it."""
    readers = [Reader() for _ in range(OFFERS_PER_TURN // 4)]
    for reader in readers:
        desk.matcher.add(reader, TopicSubscription("t", 1))
        desk.feed.join(reader)
    desk.feed.detach()
    desk.topic.unwatch(desk.feed.advance)
    desk.bench.cache.bytes_max = cache
    values = [b"%d" % number for number in range(12)]
    await desk.publish(*values)
    desk.feed.attach(desk.topic)
    seen = [len(desk.reader.got)]
    while seen[-1] < len(values):
        await trio.lowlevel.checkpoint()
        seen.append(len(desk.reader.got))
    # between two turns of this task, another one has two at most
    assert max(after - before for before, after in pairwise([0, *seen])) <= 2 * 4
    assert len(seen) >= 2
    assert all(reader.got == values for reader in readers)


async def test_an_entry_that_cannot_be_read_is_passed(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = kafka.entry_of([Record(0, NOW, None, b"x")], 0, NOW, "p")[:-3]
    with caplog.at_level(logging.ERROR):
        await stored(desk.topic.ledger, damaged)
    await desk.publish(b"after")
    assert desk.reader.got == [b"after"]
    assert "no client can be given entry" in caplog.text


async def test_who_joins_later_gets_what_comes_then(desk: Desk) -> None:
    desk.feed.leave(desk.reader)
    assert not desk.feed.is_read
    await desk.publish(b"0")
    desk.feed.join(desk.reader)
    await desk.publish(b"1")
    assert desk.reader.got == [b"1"]


async def test_a_topic_that_is_loaded_again(desk: Desk) -> None:
    await desk.publish(b"0")
    await desk.topic.close()
    desk.feed.detach()
    desk.feed.advance()
    assert desk.reader.got == [b"0"]
    again = await desk.bench.topic()
    desk.topic = again
    await desk.publish(b"1")
    desk.feed.attach(again)
    await desk.publish(b"2")
    assert desk.reader.got == [b"0", b"1", b"2"], "nothing is missing, and nothing comes twice"


@pytest.mark.parametrize("whole_ledger", [False, True])
async def test_lost_entries_are_skipped(
    desk: Desk, caplog: pytest.LogCaptureFixture, whole_ledger: bool
) -> None:
    """One damaged entry, or a ledger that is missing (each has three): the others are offered,
    and the loss is logged once.
    """
    desk.bench.cache.bytes_max = 0
    desk.feed.detach()
    desk.topic.unwatch(desk.feed.advance)
    values = [b"%d" % number for number in range(9)]
    for begin in (0, 3, 6):
        await desk.publish(*values[begin : begin + 3])
    _, middle, last = (one.ledger_id for one in desk.topic.ledger.chain.segments[:3])
    assert desk.topic.ledger.chain.confirmed[0] >= last
    if whole_ledger:
        await desk.bench.ledgers.delete(middle)
    else:
        desk.bench.ledgers.ledgers[middle].damaged.add(1)
    with caplog.at_level(logging.ERROR):
        desk.feed.attach(desk.topic)
        await settled()
    assert desk.reader.got == (values[:3] + values[6:] if whole_ledger else values[:4] + values[5:])
    assert caplog.text.count("are lost") == 1
    assert desk.topic.ledger.losses.entries == (3 if whole_ledger else 1)


async def test_a_message_that_is_no_longer_stored(desk: Desk) -> None:
    """Its entry is lost, or its ledger was deleted after retention."""
    await desk.publish(b"0", b"1", b"2", b"3")
    first, last = desk.topic.ledger.chain.first, desk.topic.ledger.chain.confirmed
    desk.bench.cache.bytes_max = 0
    await desk.publish(b"4")
    assert len((await desk.feed.message_at(last)).packets) == 1
    desk.bench.ledgers.ledgers[first[0]].damaged.add(first[1])
    assert not (await desk.feed.message_at(first)).packets
    assert not (await desk.feed.message_at((first[0] - 1, 0))).packets
    assert not (await desk.feed.message_at(desk.feed.end)).packets
