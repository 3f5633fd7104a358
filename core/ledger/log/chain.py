"""The chain of ledgers of one topic: which positions exist, and which follows which. Pure.

Pulsar's `ManagedLedgerImpl` has this arithmetic too (`getValidPositionAfterSkippedEntries`,
`getNumberOfEntries`); it keeps no holes, because its compaction writes a second log (PIP-14).

Invariants: segments are in order of ledger id; `confirmed` is the last entry that may be read, and
never moves back; the position one past the last entry is valid and means the next entry written;
entries of a compacted ledger keep their positions.
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
    """One ledger of the chain. `entries` of the one being written counts confirmed entries."""

    ledger_id: int
    first_index: int
    entries: int = 0
    size: int = 0
    """Bytes of payload."""
    closed_ms: int = 0
    """0 while open."""
    others: Mapping[str, str] = {}
    """Properties as stored, those of other brokers and tools included."""
    offload: bytes = b""
    """Pulsar's OffloadContext (PIP-17) as stored; it is preserved and not used."""
    remaining: RemainingEntries | None = None
    """The entries that compaction left; `entries` still counts up to the last of them."""
    begun_ms: int = 0
    """When it was created; 0 if another broker created it, since Pulsar does not record that."""

    @property
    def stored_in(self) -> int:
        """The ledger that holds its entries."""
        return self.ledger_id if self.remaining is None else self.remaining.ledger_id

    @property
    def first_entry(self) -> int:
        """The id of the first remaining entry."""
        return 0 if self.remaining is None else self.remaining.ids[0]

    @property
    def ids(self) -> Sequence[int]:
        """The ids of the remaining entries."""
        return range(self.entries) if self.remaining is None else self.remaining.ids


_id_of = attrgetter("ledger_id")


class Chain:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.confirmed: Position = START
        self.opened_behind: Position = START
        """The last entry when the log was opened: of a former owner, or of a former process."""
        self.start: Position = START
        """Entries before it are deleted, even if storage still holds them."""
        self.rewritten = 0
        """How many times compaction has replaced ledgers."""
        self.begins_at = NOWHERE
        """The index of the first message, if that is not the first one of the first ledger."""

    def last_entry_of(self, segment: Segment) -> int:
        """The id of the last readable entry of a ledger of the chain; -1 if it has none."""
        if segment.ledger_id == self.confirmed[0]:
            return self.confirmed[1]
        return segment.entries - 1

    def segment_of(self, ledger_id: int) -> Segment | None:
        """The ledger with that id, if it is part of the chain."""
        place = bisect_left(self.segments, ledger_id, key=_id_of)
        if place < len(self.segments) and self.segments[place].ledger_id == ledger_id:
            return self.segments[place]
        return None

    def entries_from(self, position: Position) -> int:
        """The number of entries without a gap from `position` on; at least 1."""
        segment = self.segment_of(position[0])
        if segment is None:
            return 1
        entries = self.last_entry_of(segment) - position[1] + 1
        if segment.remaining is not None:
            _, entries = segment.remaining.run(position[1], entries)
        return max(entries, 1)

    @property
    def first(self) -> Position:
        """The position of the first entry, or of the next one written if there is none."""
        return self.normal(START)

    def first_index(self, next_index: int) -> int:
        """The lowest index of any message; `next_index` if there is none."""
        if self.begins_at != NOWHERE:
            return self.begins_at
        for one in self.segments:
            if one.entries:
                return one.first_index
        return next_index

    def after(self, position: Position) -> Position:
        """The position to read after `position`; its entry may not be written yet."""
        return self.normal((position[0], position[1] + 1))

    def normal(self, position: Position) -> Position:
        """The first valid position at or after `position`, whose entry may be deleted."""
        if position < self.start:
            position = self.start
        ledger_id, entry_id = position[0], max(position[1], 0)
        confirmed = self.confirmed
        if ledger_id == confirmed[0]:
            if not self._ends_in(ledger_id):
                return (ledger_id, confirmed[1] + 1)
            return (ledger_id, min(entry_id, confirmed[1] + 1))
        segments = self.segments
        begins = 0
        if segments and segments[0].ledger_id < ledger_id:
            begins = bisect_left(segments, ledger_id, key=_id_of)
        for place in range(begins, len(segments)):
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
        """Whether the ledger of the last entry is in the chain; it may be trimmed or lost."""
        segments = self.segments
        if segments and segments[-1].ledger_id == ledger_id:
            return True
        return self.segment_of(ledger_id) is not None

    def has(self, position: Position) -> bool:
        """Whether there is a readable entry at `position`, which `normal` has returned."""
        return position <= self.confirmed and position[1] >= 0

    def entries_between(self, after: Position, up_to: Position) -> int:
        """The number of entries in (after, up_to]."""
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

    def entry_bytes(self, ledger_id: int, open_bytes: int) -> int:
        """What an entry of that ledger has, on average; 0 if nobody knows."""
        segment = self.segment_of(ledger_id)
        if segment is None or not segment.entries:
            return 0
        return (segment.size if segment.closed_ms else open_bytes) // segment.entries

    def bytes_after(self, position: Position, open_bytes: int) -> int:
        """Bytes of payload after `position`, as if all entries of a ledger had the same size.

        `open_bytes` is the size of the ledger being written, if there is one. Pulsar estimates a
        backlog in the same way (`ManagedLedgerImpl.estimateBacklogFromPosition` of 4.2).
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
