"""The bookie's own tasks: checkpoints, garbage collection, disk checks.

Invariant: an error that a task cannot handle is reported once, as fatal; no task ends silently.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Final

import trio

from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed

LOOK_SECONDS: Final = 0.02
"""The pause between two steps of reading an index, of a millisecond or two: 100,000 entries/s."""
AGE_SECONDS: Final = 10.0
"""What is read from entry logs stays cached for so long, and at most twice as long."""

log = logging.getLogger(__name__)


def _look(looks: Iterator[int]) -> int | None:
    """Read an index on, in a thread; None at the end, or after an error."""
    try:
        return next(looks, None)
    except Corrupted:
        return None  # the index has logged it
    except OSError as error:
        log.error("an index cannot be read through: %s", error)
        return None


class BookieHousekeeping:
    """Runs the periodic tasks, and reports a failing disk."""

    def __init__(
        self,
        settings: BookieSettings,
        checkpointer: Checkpointer,
        collector: Collector,
        scrub: Callable[[], Awaitable[None]],
        failed: Callable[[str], None],
        age: Callable[[], None],
    ) -> None:
        """`scrub` reads entry logs through until cancelled; `age` drops what is cached for long."""
        self._age = age
        self._scrub_logs = scrub
        self._settings = settings
        self._storage = checkpointer.storage
        self._checkpointer = checkpointer
        self._collector = collector
        self._disk = checkpointer.disk
        self._failed = failed
        self._scope = trio.CancelScope()

    def cancel(self) -> None:
        self._scope.cancel()

    async def run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._checkpoints)
                nursery.start_soon(self._collections)
                nursery.start_soon(self._location_compactions)
                nursery.start_soon(self._disk_checks)
                nursery.start_soon(self._read_indexes)
                nursery.start_soon(self._scrub)
                nursery.start_soon(self._age_cache)

    async def _checkpoints(self) -> None:
        try:
            await self._checkpointer.begin()
            await self._checkpointer.retire()
            await self._checkpointer.run(self._settings.checkpoint_interval_seconds)
        except* (OSError, StorageFailed) as group:  # what ran in a nursery fails as a group
            self._failed(f"a checkpoint failed: {group.exceptions[0]}")

    async def _collections(self) -> None:
        try:
            await self._collector.run()
        except OSError as error:
            self._failed(f"collecting garbage failed: {error}")

    async def _location_compactions(self) -> None:
        try:
            await self._collector.locations.run()
        except (OSError, Corrupted) as error:
            self._failed(f"compacting the index of locations failed: {error}")

    async def _read_indexes(self) -> None:
        """Read both indexes once after a start: damage is logged and noted (`index/wear.py`)."""
        for index in (self._storage.locations, self._storage.ledgers):
            with closing(index.read_through()) as looks:
                count: int | None = 0
                while count is not None:
                    count = await self._storage.machine.threads.run(_look, looks)
                    await trio.sleep(LOOK_SECONDS)

    async def _scrub(self) -> None:
        try:
            await self._scrub_logs()
        except (OSError, BrokerError) as error:  # readers that need what is damaged get errors
            log.error("entry logs are read through no further: %s", error)

    async def _disk_checks(self) -> None:
        while True:
            await trio.sleep(self._settings.disk_check_interval_seconds)
            self._disk.check_and_log()
            if self._settings.force_gc_when_no_space and self._disk.pressure:
                self._collector.collect_for_room()

    async def _age_cache(self) -> None:
        while True:
            await trio.sleep(AGE_SECONDS)
            self._age()
