"""Peers that do not read, and what is counted meanwhile; who is flushed now, and who later."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio
import trio.testing

from magnetar.core.kernel.clock import Clock
from magnetar.core.link.connection import (
    JOIN_BYTES_MAX,
    PROOF_BYTES,
    SENDING_SECONDS,
    SENT_UNSEEN,
    Connection,
    TouchedConnections,
    rest_of,
)
from magnetar.core.link.limits import MEBIBYTE, LinkLimits
from magnetar.core.link.memory.inbound import ASKING_BYTES
from magnetar.core.link.memory.outbound import PART_OF_PROVEN, SMALL_BYTES
from magnetar.core.link.tests.echo import Bench, LineWire, receive_exactly, running
from magnetar.core.testing.clock import FixedClock


@asynccontextmanager
async def answered(
    limits: LinkLimits,
) -> AsyncIterator[tuple[Bench, trio.SocketStream]]:
    """A link whose one peer has said something and was answered; and the peer's stream."""
    async with running(limits) as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        await receive_exactly(stream, 2)
        yield bench, stream


async def test_a_peer_that_never_reads_is_not_read_either() -> None:
    limits = LinkLimits(outbox_high_bytes=64 * 1024)
    line = b"x" * 9999 + b"\n"
    async with running(limits) as bench, await bench.dial() as stream:
        sent = 0

        async def send() -> None:
            nonlocal sent
            while True:
                await stream.send_all(line)
                sent += len(line)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while not any(each.congested for each in bench.connections):
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(0.1)
            nursery.cancel_scope.cancel()
        (connection,) = bench.connections
        # one receive's worth may come on top of the mark
        assert connection.outbox_bytes <= limits.outbox_high_bytes + 600_000
        assert connection.congested
        before = bench.events.count("relieved")
        # how much lies in the system's own buffers before the outbox shrinks is the system's choice
        received = 0
        while bench.events.count("relieved") == before:
            assert await receive_exactly(stream, len(line)) == line
            received += len(line)
            assert received < sent, "whoever held back may go on"


class KeepingWire(LineWire):
    """Gives one piece at a time."""

    def __init__(self, connection: Connection, pieces: list[bytes]) -> None:
        super().__init__()
        self.connection = connection
        self.outgoing = pieces
        self.asked = 0

    def take_outgoing(self) -> list[bytes]:
        self.asked += 1
        given, self.outgoing = self.outgoing[:1], self.outgoing[1:]
        if self.outgoing:
            self.connection.keep(sum(map(len, self.outgoing)))
        return given


async def test_what_a_wire_keeps_is_counted_and_comes_when_the_rest_is_sent() -> None:
    pieces = [bytes([number]) * MEBIBYTE for number in range(16)]
    async with answered(LinkLimits()) as (bench, stream):
        (connection,) = bench.connections
        wire = connection.wire = KeepingWire(connection, pieces)
        connection.touch()
        while not connection.outbox:
            await trio.lowlevel.checkpoint()
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        asked = wire.asked
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert (wire.asked, connection.congested) == (asked, True)
        assert connection.packed_bytes == MEBIBYTE * len(wire.outgoing) > 0
        assert await receive_exactly(stream, 16 * MEBIBYTE) == b"".join(pieces)
        while connection.touched:
            await trio.lowlevel.checkpoint()
        assert connection.packed_bytes == 0
        assert not connection.congested


def test_what_is_left_of_a_piece() -> None:
    large = bytes(JOIN_BYTES_MAX + 1)
    for piece in (large, memoryview(large)):
        view = rest_of(piece, 1)
        assert isinstance(view, memoryview)
        assert (view.obj, view) == (large, large[1:])
    assert rest_of(b"abc", 1) == b"bc"


def test_little_that_is_left_keeps_no_large_piece() -> None:
    """However often a part is sent, and also where the piece was a view before."""
    large = bytes(16 * JOIN_BYTES_MAX)
    for piece in (large, memoryview(large), memoryview(large)[100:]):
        while len(piece) > 3:
            piece = rest_of(piece, max(len(piece) // 3, 1))
            kept = piece.obj if isinstance(piece, memoryview) else piece
            assert len(kept) <= 2 * len(piece)


async def test_what_is_left_of_a_large_piece_is_not_copied() -> None:
    piece = bytes(64 * MEBIBYTE)
    async with answered(LinkLimits(outbox_high_bytes=128 * MEBIBYTE)) as (bench, stream):
        (connection,) = bench.connections
        connection.wire = KeepingWire(connection, [piece])
        connection.touch()
        while not connection.outbox:
            await trio.lowlevel.checkpoint()
        (rest,) = connection.outbox
        assert isinstance(rest, memoryview)
        assert rest.obj is piece
        await receive_exactly(stream, len(piece) * 3 // 4)
        while connection.outbox_bytes > len(piece) // 2:
            await trio.lowlevel.checkpoint()
        assert await receive_exactly(stream, len(piece) // 4) == bytes(len(piece) // 4)
        assert not connection.outbox


async def test_what_is_packed_counts_before_it_is_flushed() -> None:
    async with answered(LinkLimits(outbox_high_bytes=100)) as (bench, _):
        connection = bench.connections[0]
        connection.packed(60)
        assert not connection.congested
        connection.packed(60)
        assert connection.congested
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not connection.congested
        assert "relieved" in bench.events  # whoever held back is told to go on


async def test_who_is_passed_by_for_others_is_told_when_it_has_taken_all() -> None:
    async with answered(LinkLimits()) as (bench, _):
        connection = bench.connections[0]
        outgoing = connection.link.outgoing
        others = outgoing.limit - outgoing.limit // PART_OF_PROVEN
        outgoing.add(others)
        connection.packed(60)
        assert connection.congested, "others hold all but what is kept"
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert bench.events.count("relieved") == 1
        assert connection.congested, "it has not shown that it reads"
        outgoing.remove(others)
        connection.link.schedule_settle()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert bench.events.count("relieved") == 2
        assert not connection.congested


async def test_who_takes_too_little_is_read_no_more_the_sooner_the_less_is_left() -> None:
    async with answered(LinkLimits()) as (bench, _):
        connection = bench.connections[0]
        outgoing = connection.link.outgoing
        connection.packed(SMALL_BYTES + 1)
        assert not connection.takes_too_little
        outgoing.add(outgoing.limit)
        assert connection.takes_too_little
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not connection.takes_too_little
        assert bench.events.count("relieved") == 1, "it may have answers again"
        connection.packed(SMALL_BYTES)
        assert not connection.takes_too_little, "a little is always taken"
        outgoing.remove(outgoing.limit)


async def test_little_is_received_of_many_requests() -> None:
    """Unless the peer has had something stored."""
    async with answered(LinkLimits()) as (bench, stream):
        connection = bench.connections[0]
        incoming = connection.link.incoming
        assert connection.has_room_to_wait(LinkLimits().partial_bytes_max // 2)
        assert incoming.requests_high
        before, sweeps = connection.received_bytes, connection.link.statistics().sweeps
        await stream.send_all(b"x" * (3 * ASKING_BYTES))
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert connection.received_bytes - before == 3 * ASKING_BYTES
        assert connection.link.statistics().sweeps - sweeps >= 3
        connection.has_answered(LinkLimits().partial_bytes_max // 2)
        assert not incoming.requested


async def test_what_is_kept_is_for_who_reads() -> None:
    async with answered(LinkLimits()) as (bench, _):
        connection = bench.connections[0]
        outgoing = connection.link.outgoing
        outgoing.add(outgoing.limit - outgoing.limit // PART_OF_PROVEN)
        connection.packed(PROOF_BYTES)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not connection.congested
        assert connection.share() > 0
        connection.packed(60)
        assert connection.congested, "one at a time"
        outgoing.add(outgoing.limit // PART_OF_PROVEN)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert connection.congested, "nothing is left at all"
        outgoing.remove(outgoing.limit)


async def test_who_acknowledges_reads_however_little_that_was() -> None:
    async with answered(LinkLimits()) as (bench, _):
        connection = bench.connections[0]
        outgoing = connection.link.outgoing
        outgoing.add(outgoing.limit - outgoing.limit // PART_OF_PROVEN)
        assert connection.congested
        connection.answers = True
        assert not connection.congested
        connection.packed(60)
        assert connection.congested, "one at a time"
        outgoing.remove(outgoing.limit - outgoing.limit // PART_OF_PROVEN)


async def test_who_only_waited_to_be_stored_has_proved_nothing() -> None:
    async with answered(LinkLimits()) as (bench, _):
        connection = bench.connections[0]
        connection.storing(100)
        connection.stored(100, proves=False)
        assert not connection.partial.proven
        connection.storing(100)
        connection.stored(100)
        assert connection.partial.proven


async def test_a_silent_peer_is_probed_by_the_system() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"hello\n")
        await receive_exactly(stream, 6)
        (connection,) = bench.connections
        connection.probe()
        assert connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        bench.link.drop(connection, "the test is over")
        connection.probe()  # changes nothing


async def test_a_large_view_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a wire packs need not be bytes: a large entry is sent from where it lies."""
    entry = bytes(range(250)) * 4_000
    async with answered(LinkLimits()) as (bench, stream):
        connection = bench.connections[0]
        packed = [memoryview(entry)]
        monkeypatch.setattr(
            connection.wire, "take_outgoing", lambda: [packed.pop()] if packed else []
        )
        connection.touch()
        assert await receive_exactly(stream, len(entry)) == entry
        assert not connection.outbox


# -- who was touched ---------------------------------------------------------------------------


class SlowPeer:
    """Sending to it takes a while, and may touch another one."""

    def __init__(self, sends: Sends, number: int) -> None:
        self._sends = sends
        self._number = number

    def flush(self) -> None:
        sends = self._sends
        sends.clock.forward(sends.seconds_each)
        sends.flushed.append(self._number)
        if self._number in sends.touches:
            sends.touch(sends.touches.pop(self._number))


class Sends:
    """Peers by number, and the order in which they are flushed."""

    def __init__(self, seconds_each: float) -> None:
        self.seconds_each = seconds_each
        self.clock = FixedClock()
        self.touched = TouchedConnections()
        self.flushed: list[int] = []
        self.touches: dict[int, int] = {}

    def touch(self, *numbers: int) -> None:
        for number in numbers:
            self.touched.add(cast("Connection", SlowPeer(self, number)))

    def flush(self) -> list[int]:
        """Who was flushed by one call."""
        before = len(self.flushed)
        self.touched.flush(cast("Clock", self.clock))
        return self.flushed[before:]


@pytest.mark.parametrize("seconds_each", [0.0, SENDING_SECONDS / 1000])
def test_all_are_flushed_in_order_while_sending_is_quick(seconds_each: float) -> None:
    sends = Sends(seconds_each)
    sends.touch(*range(100))
    sends.touches = {99: 100, 100: 101}  # what is sent may make room for more
    assert sends.flush() == list(range(102))
    assert not sends.touched


def test_those_who_are_left_come_before_those_who_were_touched_since() -> None:
    sends = Sends(SENDING_SECONDS / 4)
    sends.touch(*range(40))
    sends.touches = {0: 100}
    first = sends.flush()
    assert first == list(range(2 * SENT_UNSEEN))
    assert sends.touched
    sends.touch(200)
    while sends.touched:
        assert sends.flush()
    assert sends.flushed == [*range(40), 100, 200]


def test_a_few_are_flushed_without_a_look_at_the_clock() -> None:
    sends = Sends(10 * SENDING_SECONDS)
    sends.touch(*range(SENT_UNSEEN))
    assert sends.flush() == list(range(SENT_UNSEEN))
