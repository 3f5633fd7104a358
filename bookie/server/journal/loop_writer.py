"""Writes the journal from the loop into the page cache, if appends do not wait for the disk.

    state      leaves when           for
    idle       a batch is put        idle: it is written and handed on before `put` returns;
                                     ROLLING, if the file has no room for it
    ROLLING    the next file is in   idle, once all that was put meanwhile is written

A write into the page cache takes less time than handing it to a thread. A thread does what would
block: it rolls to the next file, and syncs a second after the first unsynced write.

Invariants: only whole groups are synced; nothing is written while the thread rolls; batches are
delivered in order, even if a callback puts another; after a failed write or sync nothing is written
or synced any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty
from typing import Final

import trio

from magnetar.bookie.server.journal.groups import Batch, CommitGroups, failure
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.threads import Threads

UNSYNCED_SECONDS: Final = 1.0
"""How long written data may be in memory only."""
SYNC: Final = -1
STOP: Final = -2
"""Requests to the thread. A number of bytes requests a roll to a file with that much room."""


class LoopWriter:
    """See the module's docstring. `_run` and what it calls is for the thread, all else for the
    loop.
    """

    def __init__(
        self,
        groups: CommitGroups,
        deliver: Callable[[list[Batch], StorageFailed | None], None],
        threads: Threads,
    ) -> None:
        self._groups = groups
        self._deliver = deliver
        self._threads = threads
        self._queue: deque[Batch] = deque()
        self._writing = self._rolling = self._sync_requested = False
        self._broken: StorageFailed | None = None
        self._resting = trio.lowlevel.ParkingLot()
        """`stop` waits here for the next file."""
        self._stopped = trio.Event()
        self._requests = threads.queue()
        threads.start(self._run, "journal-sync")

    def put(self, batch: Batch) -> None:
        self._queue.append(batch)
        self._go_on()

    async def stop(self) -> None:
        while self._rolling:
            await self._resting.park()
        self._requests.put(STOP)
        await self._stopped.wait()
        await self._threads.run(self._groups.close)

    # -- writing ------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Write waiting batches, as far as the file has room."""
        if self._writing:
            return  # called by a callback: the loop below takes the new batch
        self._writing = True
        try:
            while self._queue and not self._rolling and self._broken is None:
                self._write_one()
        finally:
            self._writing = False
        if self._broken is not None:
            self._refuse(self._broken)

    def _write_one(self) -> None:
        batch = self._queue[0]
        try:
            if batch[1] > self._groups.file.room:
                self._rolling = True
                self._requests.put(batch[1])
                return
            self._write(batch)
        except Exception as error:  # noqa: BLE001 - our own mistake must not leave appends
            # waiting for ever: it ends the process as a broken disk does.
            self._broken = failure(error)
            return
        self._deliver([self._queue.popleft()], None)

    def _write(self, batch: Batch) -> None:
        groups = self._groups
        items, size = batch
        groups.begin(size)
        pieces = [blob for blob, _ in items]
        pieces.append(groups.padding(pieces, groups.file.position + size))
        groups.file.write_pieces(pieces)
        groups.end()
        self._request_sync()

    def _request_sync(self) -> None:
        if not self._sync_requested:
            self._sync_requested = True
            self._requests.put(SYNC)

    def _refuse(self, error: StorageFailed) -> None:
        lost = list(self._queue)
        self._queue.clear()
        self._deliver(lost, error)

    # -- what blocks --------------------------------------------------------------------------

    def _run(self) -> None:
        waits = False
        while True:
            try:
                request = self._requests.get(timeout=UNSYNCED_SECONDS if waits else None)
            except Empty:
                waits = False
                self._do(self._groups.sync, SYNC)
                continue
            if request == SYNC:
                waits = True  # a moment, so that one sync covers more writes
            elif request == STOP:
                self._do(self._groups.sync, STOP)
                return
            else:
                self._do(partial(self._groups.roll, request), request)

    def _do(self, job: Callable[[], None], request: int) -> None:
        failed: StorageFailed | None = None
        if self._broken is None:
            try:
                job()
            except Exception as error:  # noqa: BLE001 - as above
                failed = failure(error)
                if not isinstance(failed, StorageFull):
                    self._broken = failed
        self._threads.call_soon(self._done, request, failed)

    def _done(self, request: int, failed: StorageFailed | None) -> None:
        """On the loop."""
        if request == SYNC:
            self._sync_requested = False
            if self._groups.unsynced:
                self._request_sync()
        elif request == STOP:
            self._stopped.set()
        else:
            self._rolling = False
        if isinstance(failed, StorageFull):
            self._refuse(failed)
        self._go_on()  # which also reports a failure
        if not self._rolling:
            self._resting.unpark_all()
