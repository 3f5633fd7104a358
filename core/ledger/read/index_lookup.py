"""Finds the entry that holds the message with a given index.

The list of ledgers has the index of each ledger's first message; within the ledger, a binary search
reads headers of single entries. Kafka keeps a sparse index file for this (`OffsetIndex.java`); here
the header of each entry states its index (PIP-70), and `IndexLookup` remembers where the last few
readers continue, who then need no search.

Invariant: a remembered position is correct or not used: entries never move, and trimmed ones are
searched anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Final

from magnetar.core.entry.header import EntryHeader
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.read.readable_log import ReadableLog

REMEMBERED_MAX: Final = 256
"""Positions remembered per log, one per reader."""


class IndexLookup:
    """See the module's docstring."""

    def __init__(self, ledger: ReadableLog) -> None:
        self._ledger = ledger
        self._known: OrderedDict[int, Position] = OrderedDict()

    def note(self, index: int, position: Position) -> None:
        """The entry at `position` begins with `index`."""
        self._known[index] = position
        self._known.move_to_end(index)
        while len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    def known(self, index: int) -> Position | None:
        """The position of the entry that begins with the message, if noted. Plain call."""
        found = self._known.get(index)
        return found if found is not None and self._ledger.chain.normal(found) == found else None

    async def find(self, index: int) -> Position:
        """The position of the entry with the message, or of the next one if it was compacted away.

        `index` is between the log's `first_index` and its `confirmed_index`.
        """
        known = self.known(index)
        if known is not None:
            return known
        segments = [one for one in self._ledger.chain.segments if one.entries]
        place = bisect_right(segments, index, key=lambda one: one.first_index) - 1
        segment = segments[max(place, 0)]
        return self._ledger.chain.normal((segment.ledger_id, await self._within(segment, index)))

    async def _within(self, segment: Segment, index: int) -> int:
        """The first entry of a ledger whose last message has at least that index."""
        ids = segment.ids
        low, high = 0, len(ids)
        while low < high:
            middle = (low + high) // 2
            position = (segment.ledger_id, ids[middle])
            try:
                if await self._last_index(position) < index:
                    low = middle + 1
                else:
                    high = middle
            except Corrupted:
                lost = self._ledger.losses.at(position)
                if lost is None:
                    raise
                if lost.next_index <= index:
                    low = bisect_right(ids, lost.last)
                else:  # in it, or before it
                    high = bisect_left(ids, lost.first)
        return ids[low] if low < len(ids) else segment.entries

    async def _last_index(self, position: Position) -> int:
        return (await _header_at(self._ledger, position)).index


async def first_index_at(ledger: ReadableLog, position: Position) -> int:
    """The index of the first message of an entry that exists, also of one that is lost."""
    try:
        return (await _header_at(ledger, position)).first_index
    except Corrupted:
        if ledger.losses.at(position) is None:
            raise
        return ledger.losses.index_at(position)


async def _header_at(ledger: ReadableLog, position: Position) -> EntryHeader:
    cached = ledger.cached(position)
    if cached is not None:
        part, at = cached
        return part.header(at)
    return (await ledger.read(position, 1, 1)).header(0)
