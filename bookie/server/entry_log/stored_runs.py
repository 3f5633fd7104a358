"""Runs of the journal that entry logs hold already: a replay with little room spares their space.

A bookie that was killed had written out much of what is behind lastMark. The newest logs have it,
but no index does, since the memory of an index is lost. So logs are scanned for the ledgers and
entries that the journal has.

Invariant: a location is told only if the log has the bytes of the whole run there, now. No digest
and no index is trusted for that.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from magnetar.bookie.format.entries import LENGTH_BYTES, Run
from magnetar.bookie.format.locations import split
from magnetar.bookie.server.entry_log.reader import EntryLogReader
from magnetar.core.kernel.errors import Corrupted

log = logging.getLogger(__name__)

SCANNED_TIMES: Final = 2
"""Logs are scanned, newest first, up to this many times the bytes of the journal: what was written
out of it may stand among copies that a compaction made, and repeated attempts.
"""


class _Stretch(Struct, frozen=True):
    """Records in a log, with consecutive ids of one ledger."""

    first: int
    location: int
    """Of the first entry."""
    offsets: array[int]

    @property
    def last(self) -> int:
        return self.first + len(self.offsets) - 2


def _first(stretch: _Stretch) -> int:
    return stretch.first


class StoredRuns:
    """See the module's docstring. Blocks: for a thread."""

    def __init__(self, reader: EntryLogReader) -> None:
        self._reader = reader
        self._wanted: dict[int, tuple[int, int]] = {}
        """The lowest and the highest entry of each ledger in the journal."""
        self._stretches: dict[int, list[_Stretch]] = {}
        """By ledger, in the order of their first entries. They may overlap."""
        self._longest = 0
        """The most entries of a stretch."""

    def want(self, run: Run) -> None:
        """Look for a run in the scans to come."""
        low, high = self._wanted.get(run.ledger_id, (run.first, run.last))
        self._wanted[run.ledger_id] = min(low, run.first), max(high, run.last)

    def scan(self, newest_first: Iterable[int], journal_bytes: int) -> None:
        """Scan entry logs, up to a multiple of the journal's bytes."""
        left = SCANNED_TIMES * journal_bytes
        for log_id in newest_first:
            if left <= 0 or not self._wanted:
                return
            try:
                left -= self._reader.size(log_id)
                self._scan(log_id)
            except (Corrupted, OSError) as error:
                # Nothing is lost by it: what is not found is written from the journal.
                log.warning("entry log %x cannot be read to spare room: %s", log_id, error)

    def _scan(self, log_id: int) -> None:
        for location, run in self._reader.scan(log_id):
            low, high = self._wanted.get(run.ledger_id, (0, -1))
            if run.first <= high and run.last >= low:
                stretch = _Stretch(run.first, location, run.offsets)
                insort(self._stretches.setdefault(run.ledger_id, []), stretch, key=_first)
                self._longest = max(self._longest, run.count)

    def find(self, run: Run) -> int | None:
        """A location where a log has this run; None if none was found."""
        stretches = self._stretches.get(run.ledger_id, ())
        place = bisect_right(stretches, run.first, key=_first)
        while place:
            place -= 1
            stretch = stretches[place]
            if stretch.first + self._longest <= run.first:
                return None  # no earlier stretch reaches so far
            if run.first <= stretch.last:
                location = stretch.location + stretch.offsets[run.first - stretch.first]
                if self._is_at(run, location):
                    return location
        return None

    def _is_at(self, run: Run, location: int) -> bool:
        assert not run.apart, "runs of the journal are in one piece"
        log_id, offset = split(location)
        return self._reader.bytes_at(log_id, offset - LENGTH_BYTES, run.size) == run.blob
