"""Finds the first message of a log that is not older than a given time.

Messages have times of their own, which need not be in order. Kafka defines the answer for
ListOffsets (KIP-79; KIP-734 for the latest time) and keeps an index file (`TimeIndex.java`). Here
the latest time of each mixed ledger is noted as it is written, and stored when the ledger ends.
Ledgers that are too early are skipped unread; the next one is read from the last point that is
known to be too early. Two approximations save reads:

- In ledgers that only Pulsar's clients wrote, the last entry is assumed to be the latest. (Publish
  times come from clients' clocks, so they are in order up to the differences of those;
  `ManagedLedgerImpl.asyncFindPosition` of 4.2 assumes the same.)
- A batch of Pulsar's is assumed to be as late as its metadata states: event times of single
  messages are seen only when it is decoded.

Invariant: the message that is found has that time or a later one; the time noted for a ledger is
never earlier than that in the metadata of its entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import trio
from msgspec import Struct

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.read import chunked_messages
from magnetar.core.ledger.read.latest_time import LATEST, UNKNOWN, latest_in
from magnetar.core.ledger.read.readable_log import ReadableLog
from magnetar.core.ledger.read.tail_cache import Slice

READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 1024 * 1024
"""Read in one step; other tasks run between steps."""
POINTS_MAX: Final = 512
"""Points remembered per ledger."""
LEDGERS_MAX: Final = 64
"""Ledgers with remembered points, per log."""


class TimedMessage(Struct, frozen=True):
    """A message by its index, and its time."""

    index: int
    time_ms: int


class Points:
    """The latest time before some of the entries of a ledger."""

    __slots__ = ("_entries", "_latest", "_stride", "covered", "latest")

    def __init__(self) -> None:
        self.covered = 0
        """How many entries were read."""
        self.latest = -1
        """The latest time in these."""
        self._stride = 1
        self._entries: list[int] = []
        self._latest: list[int] = []
        """The latest time before the entry at the same place of `_entries`."""

    def note(self, entry_id: int, time_ms: int) -> None:
        """An entry has been read, after all earlier ones."""
        if entry_id < self.covered:
            return
        if not self._entries or entry_id >= self._entries[-1] + self._stride:
            self._entries.append(entry_id)
            self._latest.append(self.latest)
            if len(self._entries) > POINTS_MAX:
                self._stride *= 2
                del self._entries[1::2], self._latest[1::2]
        self.covered = entry_id + 1
        self.latest = max(self.latest, time_ms)

    def before(self, since_ms: int) -> int:
        """An entry before which none has that time or a later one."""
        if self.latest < since_ms:
            return self.covered
        place = bisect_left(self._latest, since_ms)
        return self._entries[place - 1] if place else 0


class Times:
    """The times of one log."""

    def __init__(self, ledger: ReadableLog) -> None:
        self._ledger = ledger
        self._points: OrderedDict[int, Points] = OrderedDict()

    # -- questions ----------------------------------------------------------------------------

    async def first_since(self, since_ms: int) -> TimedMessage | None:
        """The first message with that time or a later one."""
        for segment in list(self._ledger.chain.segments):
            if await self._latest_of(segment) < since_ms:
                continue
            begin = self._points_of(segment).before(since_ms)
            async with aclosing(self._read(segment, begin)) as entries:
                async for part, place, time_ms in entries:
                    found = None
                    if time_ms >= since_ms:
                        found = await self._message(part, place, since_ms)
                    if found is not None:
                        return found
        return None

    async def latest(self) -> TimedMessage | None:
        """The first of the messages with the latest time."""
        best: TimedMessage | None = None
        for segment in list(self._ledger.chain.segments):
            if best is not None and await self._latest_of(segment) <= best.time_ms:
                continue
            found = await self._latest_message(segment, -1 if best is None else best.time_ms)
            best = found or best
        return best

    async def _latest_message(self, segment: Segment, above_ms: int) -> TimedMessage | None:
        """The first message with the latest time of a ledger, if that is after `above_ms`."""
        best = None
        async for part, place, time_ms in self._read(segment, 0):
            if time_ms > above_ms:
                found = await self._latest_at(part, place, above_ms)
                if found is not None:
                    best, above_ms = found, found.time_ms
        return best

    async def _latest_at(self, part: Slice, place: int, above_ms: int) -> TimedMessage | None:
        best = None
        for found in await self._messages(part, place):
            if found.time_ms > above_ms:
                best, above_ms = found, found.time_ms
        return best

    async def _message(self, part: Slice, place: int, since_ms: int) -> TimedMessage | None:
        """The first message of an entry with that time or a later one."""
        late = (one for one in await self._messages(part, place) if one.time_ms >= since_ms)
        return next(late, None)

    async def _messages(self, part: Slice, place: int) -> list[TimedMessage]:
        """The messages of an entry, without those before the beginning of the log."""
        ledger, first = self._ledger, part.header(place).first_index
        position = (part.ledger_id, part.first_entry + place)
        try:
            records = await chunked_messages.records_at(ledger, position, part.sent(place))
        except Corrupted:
            return []
        found = (TimedMessage(first + one.place, one.timestamp_ms) for one in records)
        return [one for one in found if one.index >= ledger.first_index]

    async def _latest_of(self, segment: Segment) -> int:
        """An upper bound of the times in a ledger."""
        said = segment.others.get(LATEST)
        end = self._ledger.chain.last_entry_of(segment)
        if end < 0:
            return -1
        if segment.closed_ms and said is not None and said != UNKNOWN:
            return int(said)
        if segment.closed_ms and said is None:
            part = await self._part((segment.ledger_id, end))
            return latest_in(part.sent(0))
        points = self._points_of(segment)
        async with aclosing(self._read(segment, points.covered)) as entries:
            async for _ in entries:
                pass
        if segment.closed_ms:
            self._ledger.note(segment, LATEST, str(points.latest))
        return points.latest

    def _points_of(self, segment: Segment) -> Points:
        points = self._points.setdefault(segment.ledger_id, Points())
        self._points.move_to_end(segment.ledger_id)
        if len(self._points) > LEDGERS_MAX:
            self._points.popitem(last=False)
        return points

    async def _read(
        self, segment: Segment, entry_id: int
    ) -> AsyncGenerator[tuple[Slice, int, int], None]:
        """The entries of one ledger from `entry_id` on, each with its latest time."""
        chain, points = self._ledger.chain, self._points_of(segment)
        follows = entry_id <= points.covered
        position: Position = chain.normal((segment.ledger_id, entry_id))
        while position[0] == segment.ledger_id and chain.has(position):
            part = await self._part(position)
            for place in range(len(part.payloads)):
                time_ms = latest_in(part.sent(place))
                if follows:
                    points.note(part.first_entry + place, time_ms)
                yield part, place, time_ms
            await trio.lowlevel.checkpoint()
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    async def _part(self, position: Position) -> Slice:
        cached = self._ledger.cached(position)
        if cached is not None:
            return cached[0].part(cached[1], cached[1] + READ_ENTRIES)
        return await self._ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
