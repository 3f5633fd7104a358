"""The journal written by one thread, which does nothing else: works on every system.

    loop    put(batch)  ->  SimpleQueue
    thread  gather up to GROUP_BYTES  ->  write  ->  sync  ->  run_sync_soon(deliver)

So a sync never waits for the loop, and the loop never for a sync.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

import trio

from bookie.journal.groups import GROUP_BYTES, Batch, Groups, JournalFull
from core.errors import StorageFailed, StorageFull

UNSYNCED_SECONDS: Final = 1.0
"""Without `wait_sync`, how often what was written is synced after all."""


class ThreadWriter:
    """See the module's docstring. `put` and `stop` are for the loop, all else for the thread."""

    def __init__(
        self, groups: Groups, deliver: Callable[[list[Batch], StorageFailed | None], None]
    ) -> None:
        self._groups = groups
        self._deliver = deliver
        self._token = trio.lowlevel.current_trio_token()
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._broken: StorageFailed | None = None
        self._synced_at = 0.0
        self._told_all = trio.Event()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, batch: Batch) -> None:
        self._queue.put(batch)

    async def stop(self) -> None:
        self._queue.put(None)
        await trio.to_thread.run_sync(self._thread.join)
        await self._told_all.wait()

    def _run(self) -> None:
        while True:
            batches, stopping = self._gather()
            if batches:
                refused: StorageFailed | None = None
                if self._broken is None:
                    try:
                        self._commit(batches)
                    except JournalFull as error:
                        refused = StorageFull(str(error))
                    except OSError as error:
                        self._broken = StorageFailed(f"the journal cannot be written: {error}")
                    except Exception as error:  # noqa: BLE001 - our own mistake must not leave
                        # appends waiting for ever: it ends the process as a broken disk does.
                        self._broken = StorageFailed(f"the journal is broken: {error!r}")
                self._tell(batches, self._broken or refused)
            if stopping:
                break
        self._finish()

    def _gather(self) -> tuple[list[Batch], bool]:
        """Wait for one hand-over, then take what else is there."""
        queue = self._queue
        if not self._groups.wait_sync and self._unsynced() and queue.empty():
            time_left = self._synced_at + UNSYNCED_SECONDS - time.monotonic()
            try:
                batch = queue.get(timeout=max(0.0, time_left))
            except Empty:
                self._sync_now()
                batch = queue.get()
        else:
            batch = queue.get()
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
        if not groups.wait_sync and time.monotonic() - self._synced_at >= UNSYNCED_SECONDS:
            self._sync_now()

    def _unsynced(self) -> bool:
        return self._broken is None and self._groups.unsynced

    def _sync_now(self) -> None:
        self._synced_at = time.monotonic()
        self._groups.sync()

    def _finish(self) -> None:
        try:
            if self._unsynced():
                self._sync_now()
        except OSError as error:
            self._broken = StorageFailed(f"the journal cannot be synced: {error}")
        self._groups.close()
        self._tell([], self._broken, last=True)

    def _tell(
        self, batches: list[Batch], error: StorageFailed | None, *, last: bool = False
    ) -> None:
        try:
            self._token.run_sync_soon(self._hear, batches, error, last)
        except trio.RunFinishedError:  # nobody is left to hear it
            return

    def _hear(self, batches: list[Batch], error: StorageFailed | None, last: bool) -> None:
        """On the loop."""
        if batches or error is not None:
            self._deliver(batches, error)
        if last:
            self._told_all.set()
