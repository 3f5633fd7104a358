"""The bookie's own tasks: hand appends over, write checkpoints, collect garbage, watch the disk.

Invariant: an error that a task cannot handle is reported once, as fatal; no task dies silently.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Final

import trio

from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.collector import Collector
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed

LOOK_SECONDS: Final = 0.02
"""Between two looks into an index, of a millisecond or two each: 100,000 entries in a second."""

log = logging.getLogger(__name__)


def _look(looks: Iterator[int]) -> int | None:
    """In a thread; None at the end, or where it cannot be read on."""
    try:
        return next(looks, None)
    except Corrupted:
        return None  # the index has said so
    except OSError as error:
        log.error("an index cannot be read through: %s", error)
        return None


class Flusher:
    """Hands appends to the journal at the latest when the loop has turned once.

    In a group of the event loop it comes too late and finds nothing to do; for all others (a task
    that saves a cursor) it is what hands the append over.
    """

    def __init__(self, journal: Journal) -> None:
        self._held = False
        """The loop has promised to hand over before it turns."""
        self._journal = journal
        self._woken = False
        self._parked = trio.lowlevel.ParkingLot()
        self._later: deque[Callable[[], None]] = deque()

    def begin_group(self) -> None:
        """The caller calls `flush_group` before the loop turns: no task has to be woken."""
        self._held = True

    def flush_group(self) -> None:
        """Hand over what was appended since the last time."""
        self._held = False
        self._journal.hand_over()

    def wake(self) -> None:
        """Something was appended, and nothing was before."""
        if not self._held:
            self._wake()

    def later(self, call: Callable[[], None]) -> None:
        """Call soon, on the loop, not now."""
        self._later.append(call)
        self._wake()

    def _wake(self) -> None:
        self._woken = True
        self._parked.unpark_all()

    async def run(self) -> None:
        while True:
            # A wake-up during this work (a call appends, a hand-over is refused) finds no task
            # parked, and comes only once: without the flag its append would wait for the next.
            self._woken = False
            while self._later:
                self._later.popleft()()
            self._journal.hand_over()
            if not self._woken:
                await self._parked.park()


class BookieHousekeeping:
    """Runs what goes by the clock, and reports a disk that fails once."""

    def __init__(
        self,
        settings: BookieSettings,
        checkpointer: Checkpointer,
        collector: Collector,
        scrub: Callable[[], Awaitable[None]],
        failed: Callable[[str], None],
    ) -> None:
        """`scrub`: read entry logs through until cancelled."""
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
                nursery.start_soon(self._disk_checks)
                nursery.start_soon(self._read_indexes)
                nursery.start_soon(self._scrub)

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

    async def _read_indexes(self) -> None:
        """Once after a start: rot is reported, and noted so that the next start rebuilds."""
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
            self._disk.look()
