"""Writes the journal in a thread, where the kernel cannot write asynchronously.

    loop    put(batch)  ->  queue
    thread  gather up to GROUP_BYTES  ->  write  ->  sync  ->  call_soon(deliver)

So a sync never waits for the loop, nor the loop for a sync. Apache's journal has two threads, one
for writes and one for syncs (`ForceWriteThread` in `Journal.java` of 4.18), so that a group is
written while the one before it is synced. Rule 2 of `format/journal.py` forbids that here.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from magnetar.bookie.server.journal.groups import GROUP_BYTES, Batch, CommitGroups, failure
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.threads import Threads


class ThreadWriter:
    """See the module's docstring. `put` and `stop` are for the loop, all else for the thread."""

    def __init__(
        self,
        groups: CommitGroups,
        deliver: Callable[[list[Batch], StorageFailed | None], None],
        threads: Threads,
    ) -> None:
        self._groups = groups
        self._deliver = deliver
        self._threads = threads
        self._queue = threads.queue()
        self._broken: StorageFailed | None = None
        self._delivered_all = trio.Event()
        self._thread = threads.start(self._run, "journal")

    def put(self, batch: Batch) -> None:
        self._queue.put(batch)

    async def stop(self) -> None:
        self._queue.put(None)
        await self._threads.run(self._thread.join)
        await self._delivered_all.wait()

    def _run(self) -> None:
        while True:
            batches, stopping = self._gather()
            if batches:
                refused: StorageFailed | None = None
                if self._broken is None:
                    try:
                        self._commit(batches)
                    except Exception as error:  # noqa: BLE001 - our own mistake must not leave
                        # appends waiting for ever: it ends the process as a broken disk does.
                        refused = failure(error)
                        if not isinstance(refused, StorageFull):
                            self._broken = refused
                self._report(batches, self._broken or refused)
            if stopping:
                break
        self._groups.close()
        self._report([], self._broken, last=True)

    def _gather(self) -> tuple[list[Batch], bool]:
        """Wait for one batch, then take the other waiting ones; returns also whether to stop."""
        queue = self._queue
        batch: Batch | None = queue.get()
        batches: list[Batch] = []
        size = 0
        while batch is not None:
            batches.append(batch)
            size += batch[1]
            if size >= GROUP_BYTES or queue.empty():
                return batches, False
            batch = queue.get()
        return batches, True

    def _commit(self, batches: list[Batch]) -> None:
        """Write one group and make it durable."""
        groups = self._groups
        size = sum(size for _, size in batches)
        if not groups.begin(size):
            groups.roll(size)
        for piece in groups.pieces(batches):
            groups.file.write(piece)
        groups.end()

    def _report(
        self, batches: list[Batch], error: StorageFailed | None, *, last: bool = False
    ) -> None:
        self._threads.call_soon(self._reported, batches, error, last)

    def _reported(self, batches: list[Batch], error: StorageFailed | None, last: bool) -> None:
        """On the loop."""
        if batches or error is not None:
            self._deliver(batches, error)
        if last:
            self._delivered_all.set()
