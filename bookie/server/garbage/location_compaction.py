"""Compaction of the index of locations, on demand: Apache's `entry_location_compact` (4.18).

RocksDB compacts it by itself as it grows; after many ledgers were deleted, what is left of them
goes sooner so. The index is compacted in slices of some ledgers: a stop waits for one of them.

Invariant: nothing reaches the disk that the entry logs do not have. RocksDB flushes its memory
before it compacts, so each slice begins with what a checkpoint does.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.garbage.compaction_schedule import CompactionStatistics
from magnetar.bookie.server.ledger_storage import LedgerStorage, make_durable

log = logging.getLogger(__name__)
SLICES: Final = 64


class LocationCompaction:
    """See the module's docstring."""

    def __init__(self, storage: LedgerStorage) -> None:
        self._storage = storage
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
        threads, clock = self._storage.machine.threads, self._storage.machine.clock
        while True:
            await self._wanted.wait()
            ids = sorted(await threads.run(self._storage.ledgers.ledger_ids))
            step = -(-len(ids) // SLICES) or 1
            try:
                for at in range(0, len(ids), step):
                    part = ids[at : at + step]
                    async with self._storage.lock:
                        await threads.run(self._compact, part[0], part[-1])
                self._count += 1
                self._last_ms = clock.wall_ms()
            except OSError as error:
                if not is_full(error):
                    raise
                log.warning("no room to compact the index of locations: %s", error)
            self._wanted = trio.Event()
            self._running = False

    def _compact(self, first: int, last: int) -> None:
        make_durable(self._storage)
        self._storage.locations.compact(first, last)
