"""Reading ledgers from which compaction has taken entries.

Whoever reads gets entries that follow each other, so there may be one at a time; so what storage is
asked for is more, and the rest waits for the next call.

Invariant: what is returned begins with the entry at that position. If that one has gone since
somebody learnt of it, its place is taken by an entry with nothing in it, which all readers pass.
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
"""Read at once, and remembered of one log."""


class Sparse:
    """What was read last of the compacted ledgers of one log."""

    __slots__ = ("_entries", "_first", "_readers", "_remaining")

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._remaining: RemainingEntries | None = None
        self._first = 0
        self._entries: list[bytes] = []

    async def read(
        self, segment: Segment, entry_id: int, entries_max: int, bytes_max: int
    ) -> Slice:
        """Entries from that one on that follow each other; at least one."""
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
            self.clear()  # the next read is for others; a log without readers caches nothing
        return Slice(segment.ledger_id, entry_id, found, header.counts_of(found))

    async def _read_ahead(self, remaining: RemainingEntries, place: int) -> list[bytes]:
        reader = await self._readers.get(remaining.ledger_id)
        last = min(place + AHEAD_ENTRIES, remaining.first + len(remaining.ids)) - 1
        entries = await reader.read(place, last, AHEAD_BYTES)
        self._remaining, self._first, self._entries = remaining, place, entries
        return entries

    def clear(self) -> None:
        """Forget what was read."""
        self._remaining, self._entries = None, []
