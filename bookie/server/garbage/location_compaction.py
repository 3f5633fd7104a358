"""Compaction of the index of locations, on demand: Apache's `entry_location_compact` (4.18).

RocksDB compacts it by itself as it grows; after many ledgers were deleted, what is left of them
goes sooner so. The index is compacted from its first key to its last, in slices; each holds the
storage's lock, and a checkpoint has its turn between two of them. However many entries a ledger
has, a slice takes about `SLICE_SECONDS`: the next one has fewer ids if one took longer. Only the
first may take a second or two: RocksDB merges those of its newest tables (level 0) that overlap as
a whole, which are not more than some dozens of megabytes.

What changes between two slices does not matter: a slice is a range of keys, which begins where the
last one ended, and is rewritten as it is then. Ledgers that are deleted meanwhile go with it, and
those that are created are small still.

Invariant: nothing reaches the disk that the entry logs do not have. RocksDB flushes its memory
before it compacts, so each slice begins with what a checkpoint does.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import trio

from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.garbage.compaction_schedule import CompactionStatistics
from magnetar.bookie.server.ledger_storage import LedgerStorage, make_durable

log = logging.getLogger(__name__)
SLICE_SECONDS: Final = 0.1
"""What a slice should take: with more than twice that the next is half as large, with less than
half of it twice as large."""
IDS_FIRST: Final = 100_000
IDS_MIN: Final = 10_000
IDS_MAX: Final = 10_000_000
"""Ids of entries in one slice."""
LEDGER_IDS: Final = 100
"""What a ledger counts for besides its entries: its last one has to be looked up."""


Place = tuple[int, int]
"""An entry: its ledger's id, and its own."""


class LocationCompaction:
    """See the module's docstring."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage
        self._now = storage.machine.clock.monotonic
        self._wanted = trio.Event()
        self._running = False
        self._count = self._last_ms = 0

    @property
    def path(self) -> str:
        """Where the index is."""
        return self._storage.locations.path

    def start(self) -> None:
        """Compact all of it soon, if that does not run already."""
        self._running = True
        self._wanted.set()

    def statistics(self) -> CompactionStatistics:
        return CompactionStatistics(
            suspended=False, running=self._running, count=self._count, last_ms=self._last_ms
        )

    async def run(self) -> None:
        """Compact whenever that is asked for, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._compact_all()
                self._count += 1
                self._last_ms = self._storage.machine.clock.wall_ms()
            except OSError as error:
                if not is_full(error):
                    raise
                log.warning("no room to compact the index of locations: %s", error)
            self._wanted = trio.Event()
            self._running = False

    async def _compact_all(self) -> None:
        storage = self._storage
        threads = storage.machine.threads
        ids = sorted(await threads.run(storage.ledgers.ledger_ids))
        place: Place | None = 0, 0
        count = IDS_FIRST
        while place is not None:
            async with storage.lock:
                place, seconds = await threads.run(self._compact, place, ids, count)
            count = next_count(count, seconds)

    def _compact(self, place: Place, ids: Sequence[int], count: int) -> tuple[Place | None, float]:
        """Compact a slice. Returns where the next one begins, None behind the last, and how long
        it took, without the syncs before it: those take the same for a smaller one.
        """
        stop = self._stop(place, ids, count)
        make_durable(self._storage)
        began = self._now()
        self._storage.locations.compact(place, stop)
        return stop, self._now() - began

    def _stop(self, place: Place, ids: Sequence[int], count: int) -> Place | None:
        """Where a slice of so many ids ends: always at an entry, None behind the last.

        Whoever adds an entry may choose its id, and of ranges without any there would be no end.
        """
        for ledger_id in ids[bisect_left(ids, place[0]) :]:
            first = place[1] if ledger_id == place[0] else 0
            found = self._storage.locations.last(ledger_id)
            left = 0 if found is None else found[0] + 1 - first
            if left > count:
                return self._storage.locations.at_or_after(ledger_id, first + count)
            count -= max(left, 0) + LEDGER_IDS
            if count <= 0:
                return self._storage.locations.at_or_after(ledger_id + 1, 0)
        return None


def next_count(count: int, seconds: float) -> int:
    """The ids of the next slice, when one of so many has taken so long."""
    if seconds > 2 * SLICE_SECONDS:
        return max(count // 2, IDS_MIN)
    if seconds < SLICE_SECONDS / 2:
        return min(2 * count, IDS_MAX)
    return count
