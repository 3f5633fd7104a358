"""Catching up by reading, apart from what is then done with a message."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.entry.mqtt.run import StoredPublish
from magnetar.core.entry.mqtt.segments import PublishSegment
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.bench import NO_AGE, Bench, settled
from magnetar.wire.mqtt.delivery.feed import Feed, MessagePlace
from magnetar.wire.mqtt.delivery.lagging_reader import LaggingReader
from magnetar.wire.mqtt.delivery.matcher import Grant
from magnetar.wire.mqtt.delivery.stored_messages import Messages
from magnetar.wire.mqtt.delivery.tests.test_subscriber import Desk


class Counter(LaggingReader):
    """Takes as many messages as it has room for."""

    __slots__ = ("got", "room")

    def __init__(self, desk: Desk, room: int) -> None:
        super().__init__(b"counter", desk.bench.env.spawn)
        self.room = room
        self.got: list[bytes] = []

    def offer(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        grant: Grant,
    ) -> None:
        if not self.is_lagging(feed):
            sent = self.send_segment(feed, position, messages, segment, 0, grant)
            if sent < segment.packets:
                self.lag(feed, MessagePlace(position, messages.places_of(segment)[sent]))

    def send_unconfirmed(self, messages: Messages, packet: StoredPublish, grant: Grant) -> bool:
        raise AssertionError("it is offered segments")

    def send(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        packet: StoredPublish,
        grant: Grant,
    ) -> bool:
        del feed, position, messages, grant
        if len(self.got) >= self.room:
            return False
        self.got.append(packet.payload)
        return True

    def grant_of(self, topic: bytes, *, own: bool) -> Grant | None:
        return Grant(1, False, ()) if topic == b"t" and not own else None

    def flush(self) -> None:
        pass

    def has_room(self) -> None:
        self.catch_up()


@pytest.fixture
async def desk(nursery: trio.Nursery) -> Desk:
    made = Bench(nursery, NO_AGE, sync_at_once=True)
    return Desk(made, await made.topic())


@pytest.mark.parametrize("cache", [0, 100_000])
async def test_it_reads_on_from_its_place(desk: Desk, cache: int) -> None:
    """In the middle of an entry too; whether entries are in memory or not."""
    reader = Counter(desk, room=2)
    desk.feed.resume(reader)
    reader.lag(desk.feed, MessagePlace(desk.feed.at, 0))
    await desk.publish(("t", 1, b"0"), ("u", 1, b"-"), ("t", 1, b"1"), ("t", 1, b"2"))
    await desk.publish(("t", 0, b"-"), ("t", 2, b"3"))
    await desk.publish(("t", 1, b"-"), client=b"counter")
    desk.bench.cache.bytes_max = cache
    await desk.publish(("t", 1, b"4"))
    reader.has_room()
    await settled()
    assert reader.got == [b"0", b"1"]
    assert reader.place_in(desk.feed).place == 3
    reader.room = 100
    reader.has_room()
    await settled()
    assert reader.got == [b"0", b"1", b"2", b"3", b"4"]
    assert not reader.lags
    assert reader.place_in(desk.feed) == MessagePlace(desk.feed.at, 0)


async def test_who_leaves_a_feed_reads_no_more(desk: Desk) -> None:
    reader = Counter(desk, room=9)
    desk.feed.resume(reader)
    reader.lag(desk.feed, MessagePlace(desk.feed.at, 0))
    desk.bench.cache.bytes_max = 0
    await desk.publish(("t", 1, b"0"))
    reader.has_room()  # a task is on its way
    reader.leave(desk.feed)
    await settled()
    assert (reader.got, reader.lags) == ([], False)


async def test_a_feed_that_is_not_loaded_is_read_once_it_is(desk: Desk) -> None:
    reader = Counter(desk, room=9)
    desk.feed.resume(reader)
    reader.lag(desk.feed, MessagePlace(desk.feed.at, 0))
    await desk.publish(("t", 1, b"0"))
    desk.feed.detach()
    reader.has_room()
    await settled()
    assert reader.got == []
    desk.feed.attach(desk.topic)
    await settled()
    assert reader.got == [b"0"]


async def test_a_lost_entry_is_skipped(desk: Desk) -> None:
    reader = Counter(desk, room=9)
    desk.feed.resume(reader)
    reader.lag(desk.feed, MessagePlace(desk.feed.at, 0))
    for number in range(3):
        await desk.publish(("t", 1, b"%d" % number))
    desk.bench.cache.bytes_max = 0
    await desk.publish(("t", 1, b"3"))
    ledger_id = desk.topic.ledger.chain.first[0]
    desk.bench.ledgers.ledgers[ledger_id].damaged.add(1)
    reader.has_room()
    await settled()
    assert reader.got == [b"0", b"2", b"3"]
    assert not reader.lags
