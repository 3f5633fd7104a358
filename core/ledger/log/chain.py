"""The chain of ledgers of one topic as arithmetic: which positions exist, what follows what. Pure.

Invariants: segments are in order of ledger id; `confirmed` is the last entry that may be read and
never goes back; a position one past the last entry is legal and means "the next one written"; of a
ledger from which entries have gone, the others keep their positions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.log.remaining_entries import RemainingEntries

Position = tuple[int, int]
"""(ledger id, entry id). (-1, -1) is before everything."""

START: Position = (-1, -1)
NOWHERE: Final = -1
"""No index."""


class Segment(Struct):
    """One ledger of the chain; `entries` of the one being written follows what is confirmed."""

    ledger_id: int
    first_index: int
    entries: int = 0
    size: int = 0
    """Bytes of payload, known when it is closed."""
    closed_ms: int = 0
    """0 while open."""
    others: Mapping[str, str] = {}
    """Properties that other brokers or tools gave it; they stay as they are."""
    offload: bytes = b""
    """Where another process has moved it, likewise."""
    remaining: RemainingEntries | None = None
    """What compaction left of it; `entries` still counts up to the last."""
    begun_ms: int = 0
    """Nothing in it was written before; 0 if another broker created it and did not record that."""

    @property
    def stored_in(self) -> int:
        """The ledger that holds its entries."""
        return self.ledger_id if self.remaining is None else self.remaining.ledger_id

    @property
    def first_entry(self) -> int:
        """The first that is left."""
        return 0 if self.remaining is None else self.remaining.ids[0]

    @property
    def ids(self) -> Sequence[int]:
        """Of the entries that are left."""
        return range(self.entries) if self.remaining is None else self.remaining.ids


_id_of = attrgetter("ledger_id")


class Chain:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.confirmed: Position = START
        self.start: Position = START
        """What is before it is over, even if it is still stored."""
        self.rewritten = 0
        """How often entries have gone from within."""
        self.begins_at = NOWHERE
        """The index of the first message, where the first ledger does not say it."""

    def last_entry_of(self, segment: Segment) -> int:
        """The last entry that may be read of one ledger of the chain, -1 if none."""
        if segment.ledger_id == self.confirmed[0]:
            return self.confirmed[1]
        return segment.entries - 1

    def segment_of(self, ledger_id: int) -> Segment | None:
        """The ledger of that id, if it is one of these."""
        place = bisect_left(self.segments, ledger_id, key=_id_of)
        if place < len(self.segments) and self.segments[place].ledger_id == ledger_id:
            return self.segments[place]
        return None

    def entries_from(self, position: Position) -> int:
        """How many entries follow each other from `position` on, that one counted in any case."""
        segment = self.segment_of(position[0])
        if segment is None:
            return 1
        entries = self.last_entry_of(segment) - position[1] + 1
        if segment.remaining is not None:
            _, entries = segment.remaining.run(position[1], entries)
        return max(entries, 1)

    @property
    def first(self) -> Position:
        """Where the first entry is, or will be."""
        return self.normal(START)

    def first_index(self, next_index: int) -> int:
        """The lowest index that is still there, or the next one if nothing is."""
        if self.begins_at != NOWHERE:
            return self.begins_at
        for one in self.segments:
            if one.entries:
                return one.first_index
        return next_index

    def after(self, position: Position) -> Position:
        """The position to read next after `position`: it may not have been written yet."""
        return self.normal((position[0], position[1] + 1))

    def normal(self, position: Position) -> Position:
        """Move a position beyond the end of its ledger, or inside a trimmed one, to the next."""
        if position < self.start:
            position = self.start
        ledger_id, entry_id = position[0], max(position[1], 0)
        confirmed = self.confirmed
        if ledger_id == confirmed[0]:
            if not self._ends_in(ledger_id):
                return (ledger_id, confirmed[1] + 1)
            return (ledger_id, min(entry_id, confirmed[1] + 1))
        segments = self.segments
        for place in range(bisect_left(segments, ledger_id, key=_id_of), len(segments)):
            segment = segments[place]
            entry = entry_id if segment.ledger_id == ledger_id else 0
            if segment.remaining is not None:
                found = segment.remaining.next(entry)
                if found is not None:
                    return (segment.ledger_id, found)
            elif entry <= self.last_entry_of(segment):
                return (segment.ledger_id, entry)
        return (confirmed[0], confirmed[1] + 1)

    def _ends_in(self, ledger_id: int) -> bool:
        """Whether the ledger of the last entry is still there; a log may have lost that one too."""
        segments = self.segments
        if segments and segments[-1].ledger_id == ledger_id:
            return True
        return self.segment_of(ledger_id) is not None

    def has(self, position: Position) -> bool:
        """Whether an entry that may be read stands at `position`, which is as `normal` gives it."""
        return position <= self.confirmed and position[1] >= 0

    def entries_between(self, after: Position, up_to: Position) -> int:
        """How many entries lie in (after, up_to]."""
        if after < self.start:
            after = (self.start[0], max(self.start[1] - 1, -1))
        if up_to <= after:
            return 0
        if after[0] == up_to[0] == self.confirmed[0]:
            return up_to[1] - after[1] if self._ends_in(up_to[0]) else 0
        total = 0
        for segment in self.segments:
            if not after[0] <= segment.ledger_id <= up_to[0]:
                continue
            first = after[1] + 1 if segment.ledger_id == after[0] else 0
            last = up_to[1] if segment.ledger_id == up_to[0] else self.last_entry_of(segment)
            if segment.remaining is not None:
                total += segment.remaining.count(first, last)
            else:
                total += max(last - first + 1, 0)
        return total

    @property
    def entries(self) -> int:
        return self.entries_between(START, self.confirmed)

    def bytes_after(self, position: Position, open_bytes: int) -> int:
        """Bytes of payload behind `position`; within one ledger taken as evenly spread.

        `open_bytes` is the size of the ledger being written, if there is one.
        """
        total = 0
        position = max(position, (self.start[0], self.start[1] - 1))
        last = self.segments[-1] if self.segments else None
        for segment in self.segments:
            entries = self.last_entry_of(segment) + 1
            if segment.ledger_id < position[0] or not entries:
                continue
            size = open_bytes if segment is last and not segment.closed_ms else segment.size
            if segment.ledger_id == position[0]:
                size = size * max(entries - position[1] - 1, 0) // entries
            total += size
        return total
