"""The bookie's own tasks: handing over appends, checkpoints, garbage collection, disk checks.

Invariant: an error that a task cannot handle is reported once, as fatal; no task ends silently.
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


class Flusher:
    """Hands appends to the journal within one turn of the loop.

    It serves appends outside the link's groups, such as those of a task that saves a cursor. The
    link hands its own over by `flush_group`.
    """

    def __init__(self, journal: Journal) -> None:
        self._held = False
        """Whether `flush_group` will be called before the loop turns."""
        self._leave_to_loop = False
        self._journal = journal
        self._woken = False
        self._parked = trio.lowlevel.ParkingLot()
        self._call_soon: deque[Callable[[], None]] = deque()

    def begin_group(self) -> None:
        """Wake no task until `flush_group`, which the caller must call before the loop turns."""
        self._held = True

    def leave_to_loop(self) -> None:
        """From now on whoever appends has `flush_group` called before the loop turns."""
        self._held = self._leave_to_loop = True

    def flush_group(self) -> None:
        """Hand all appends since the last call to the journal."""
        self._held = self._leave_to_loop
        self._journal.hand_over()

    def wake(self) -> None:
        """Called after the first append that waits: wake the task if it is needed."""
        if not self._held:
            self._wake()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function soon on the loop, not at once."""
        self._call_soon.append(call)
        self._wake()

    def _wake(self) -> None:
        self._woken = True
        self._parked.unpark_all()

    async def run(self) -> None:
        while True:
            # A wake-up during this work (a call appends, a hand-over is refused) finds no parked
            # task and is not repeated. Without the flag its append would wait for the next one.
            self._woken = False
            while self._call_soon:
                self._call_soon.popleft()()
            self._journal.hand_over()
            if not self._woken:
                await self._parked.park()


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

    async def _age_cache(self) -> None:
        while True:
            await trio.sleep(AGE_SECONDS)
            self._age()
