"""The ranges of a log that can no longer be read: each is found, logged and counted once.

An entry is lost if storage reports it as damaged, or if its ledger is missing though the list names
it; the entries before and after it are not. Readers decide what to do: a subscription stops there
until a client skips or seeks, unless `auto_skip_non_recoverable_data` is set (as in Pulsar's
`OpReadEntry.java` of 4.2); a fold skips the range, because an entry that cannot be recovered must
not make a topic unusable.

Invariant: a position is in at most one range; no entry of a range could be read when it was last
tried.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from magnetar.core.entry import header
from magnetar.core.entry.empty import EMPTY
from magnetar.core.entry.header import EntryHeader
from magnetar.core.kernel.errors import BrokerError, Corrupted, LedgerNotFound
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.ledger.write_failure_log import log_name

if TYPE_CHECKING:
    from magnetar.core.ledger.log.chain import Position, Segment
    from magnetar.core.ledger.read.readable_log import ReadableLog
    from magnetar.core.ports.ledger_store import LedgerReader

log = logging.getLogger(__name__)

DAMAGE: Final = (Corrupted, LedgerNotFound)
"""The errors of storage that mean a loss."""
RANGES_MAX: Final = 1_000
"""Ranges remembered per log; older ones are logged again if a reader meets them."""


class Lost(Struct, frozen=True):
    """Consecutive entries of one ledger that cannot be read."""

    ledger_id: int
    first: int
    last: int
    first_index: int
    """The index of their first message, as far as it can be known."""
    next_index: int
    """The index of the first message after them."""


class Losses:
    """See the module's docstring."""

    __slots__ = ("_ledger", "_looking", "count", "entries", "ranges")

    def __init__(self, ledger: ReadableLog) -> None:
        self.ranges: list[Lost] = []
        """In the order in which they were found."""
        self.count = self.entries = 0
        """Ranges and entries found since the log was opened."""
        self._ledger = ledger
        self._looking: trio.Lock | None = None
        """Held while a range is found, which may be millions of entries: tasks that meet it at the
        same time wait for one search. Created on first use.
        """

    def at(self, position: Position) -> Lost | None:
        """The known range that contains an entry. Plain call."""
        ledger_id, entry_id = position
        for one in self.ranges:
            if one.ledger_id == ledger_id and one.first <= entry_id <= one.last:
                return one
        return None

    def index_at(self, position: Position) -> int:
        """The index of the message at which a reader of a lost entry continues."""
        lost = self.at(position)
        assert lost is not None, "the entry is lost"
        return lost.first_index if position[1] == lost.first else lost.next_index

    def readable(self, position: Position) -> None:
        """An entry was read, so its range, if it was in one, is not lost."""
        lost = self.at(position) if self.ranges else None
        if lost is not None:
            self.ranges.remove(lost)

    def forget(self, ledger_id: int) -> None:
        """A ledger is deleted; drop its ranges."""
        self.ranges = [one for one in self.ranges if one.ledger_id != ledger_id]

    async def learn(
        self,
        position: Position,
        segment: Segment | None,
        reader: LedgerReader | None,
        error: BrokerError,
    ) -> BrokerError:
        """Find and note the range of an entry that could not be read; returns the error to raise.

        Without a reader, the whole ledger is missing.
        """
        if segment is None or self._ledger.chain.segment_of(position[0]) is not segment:
            return error  # it was trimmed or rewritten meanwhile
        self._looking = self._looking or trio.Lock()
        async with self._looking:
            if self.at(position) is None:
                self._note(await self._range(segment, position[1], reader), error)
        return Corrupted(str(error))

    def _note(self, lost: Lost, error: BrokerError) -> None:
        known = [
            one
            for one in self.ranges
            if one.ledger_id == lost.ledger_id and lost.first <= one.first <= lost.last
        ]
        for one in known:  # it has grown since
            self.ranges.remove(one)
            self.entries -= one.last - one.first + 1
        self.ranges.append(lost)
        del self.ranges[:-RANGES_MAX]
        self.count += 1
        self.entries += lost.last - lost.first + 1
        log.error(
            "%s: entries %d:%d to %d:%d (messages %d to %d) are lost: %s",
            log_name(self._ledger.name), lost.ledger_id, lost.first, lost.ledger_id, lost.last,
            lost.first_index, lost.next_index - 1, error,
        )  # fmt: skip

    async def _range(self, segment: Segment, entry_id: int, reader: LedgerReader | None) -> Lost:
        """The lost entries round that one. Storage of many bookies knows of each entry alone, so
        the range grows until its neighbours can be read; here, for the log's own `read` would come
        back with each of them.
        """
        first, last = await self._extent(segment, entry_id, reader)
        first_index, next_index = segment.first_index, -1
        while (at := bisect_left(segment.ids, first) - 1) >= 0:
            before = await self._header(segment, at, reader)
            if before is not None:
                first_index = max(first_index, before.index + 1)
                break
            first, _ = await self._extent(segment, segment.ids[at], reader)
        while last < self._ledger.chain.last_entry_of(segment):
            at = bisect_right(segment.ids, last)
            behind = await self._header(segment, at, reader)
            if behind is not None:
                next_index = behind.first_index if behind.index >= 0 else -1
                break
            _, last = await self._extent(segment, segment.ids[at], reader)
        if next_index < 0:
            next_index = self._index_behind(segment)
        return Lost(segment.ledger_id, first, last, first_index, next_index)

    async def _header(
        self, segment: Segment, at: int, reader: LedgerReader | None
    ) -> EntryHeader | None:
        """The header of a remaining entry of a ledger; None if that is lost as well."""
        if reader is None:
            return None
        place = at if segment.remaining is None else segment.remaining.first + at
        try:
            (entry,) = await reader.read(place, place, 1)
        except DAMAGE:
            return None
        return header.read(entry)

    async def _extent(
        self, segment: Segment, entry_id: int, reader: LedgerReader | None
    ) -> tuple[int, int]:
        if reader is None:
            return segment.first_entry, self._ledger.chain.last_entry_of(segment)
        remaining = segment.remaining
        if remaining is None:
            return await reader.damage(entry_id)
        place = remaining.first + bisect_left(remaining.ids, entry_id)
        first, last = await reader.damage(place)
        end = len(remaining.ids) - 1
        return remaining.ids[max(first - remaining.first, 0)], remaining.ids[
            min(last - remaining.first, end)
        ]

    def _index_behind(self, segment: Segment) -> int:
        """The index of the first message behind a ledger."""
        for one in self._ledger.chain.segments:
            if one.ledger_id > segment.ledger_id:
                return one.first_index
        return self._ledger.confirmed_index

    # -- going round --------------------------------------------------------------------------

    async def read_round(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        """As the log's `read`, with empty entries in place of lost ones."""
        try:
            return await self._ledger.read(position, entries_max, bytes_max)
        except Corrupted:
            lost = self.at(position)
            if lost is None:
                raise
        return self.nothing(position, lost, entries_max)

    def nothing(self, position: Position, lost: Lost, entries_max: int) -> Slice:
        """Empty entries from `position` to the end of the range."""
        count = min(lost.last - position[1] + 1, entries_max)
        segment = self._ledger.chain.segment_of(position[0])
        if segment is not None and segment.remaining is not None:
            count = 1  # entries removed by compaction have no place in a slice
        return Slice(position[0], position[1], [EMPTY] * count, None)

    async def readable_near(self, position: Position) -> Slice | None:
        """The entry at `position`, else the next readable one of its ledger, else the one
        before; None if there is none.
        """
        chain = self._ledger.chain
        segment, first, last = chain.segment_of(position[0]), position, position[1]
        try:
            return await self._ledger.read(position, 1, 1)
        except Corrupted:
            lost = self.at(position)
            if lost is None or segment is None:
                raise
            first, last = (lost.ledger_id, lost.first), lost.last
        ids = segment.ids
        after, before = bisect_right(ids, last), bisect_left(ids, first[1]) - 1
        if last < chain.last_entry_of(segment) and after < len(ids):
            return await self._ledger.read((segment.ledger_id, ids[after]), 1, 1)
        if before >= 0:
            return await self._ledger.read((segment.ledger_id, ids[before]), 1, 1)
        return None
