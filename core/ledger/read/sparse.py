"""Reads ledgers from which compaction has removed entries.

A slice has no gaps, so it may hold one entry only; therefore more is read from storage at once, and
the rest serves the next calls.

Invariant: a slice begins with the requested entry. If compaction removed that entry meanwhile, an
empty one takes its place (`core/entry/empty.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.entry import header
from magnetar.core.entry.empty import EMPTY
from magnetar.core.ledger.log.remaining_entries import RemainingEntries
from magnetar.core.ledger.read.tail_cache import Slice

if TYPE_CHECKING:
    from magnetar.core.ledger.log.chain import Segment
    from magnetar.core.ledger.read.readers import Readers

AHEAD_ENTRIES: Final = 1_000
AHEAD_BYTES: Final = 512 * 1024
"""The most that one read returns, which is cached per log."""


class Sparse:
    """The last read from the compacted ledgers of one log."""

    __slots__ = ("_entries", "_first", "_readers", "_remaining")

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._remaining: RemainingEntries | None = None
        self._first = 0
        self._entries: list[bytes] = []

    async def read(
        self, segment: Segment, entry_id: int, entries_max: int, bytes_max: int
    ) -> Slice:
        """Entries from `entry_id` on, up to the next gap; at least one."""
        assert segment.remaining is not None
        place, count = segment.remaining.run(entry_id, entries_max)
        if not count:
            return Slice(segment.ledger_id, entry_id, [EMPTY], None)
        entries, at = self._entries, place - self._first
        if self._remaining is not segment.remaining or not 0 <= at < len(entries):
            entries, at = await self._read_ahead(segment.remaining, place), 0
        found = entries[at : at + 1]
        size = len(found[0])
        for entry in entries[at + 1 : at + count]:
            size += len(entry)
            if size > bytes_max:
                break
            found.append(entry)
        if at + len(found) == len(entries):
            self.clear()  # all of it is returned; a log without readers caches nothing
        return Slice(segment.ledger_id, entry_id, found, header.counts_of(found))

    async def _read_ahead(self, remaining: RemainingEntries, place: int) -> list[bytes]:
        reader = await self._readers.get(remaining.ledger_id)
        last = min(place + AHEAD_ENTRIES, remaining.first + len(remaining.ids)) - 1
        entries = await reader.read(place, last, AHEAD_BYTES)
        self._remaining, self._first, self._entries = remaining, place, entries
        return entries

    def clear(self) -> None:
        """Drop the cached read."""
        self._remaining, self._entries = None, []
