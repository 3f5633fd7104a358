"""The journal's thread: gathers what came during the last sync, writes it, syncs it, says so.

One thread does nothing else, so that a sync never waits for the loop and the loop never for a sync:

    loop    append(blob, acked) ...  hand_over()  ->  SimpleQueue
    thread  gather up to GROUP_BYTES  ->  write  ->  sync  ->  run_sync_soon(deliver)
    loop    acked(None) for each append of the group, in order

Invariants: `acked(None)` is called only after the sync that covers the append. After a failed write
or sync nothing is written any more: the page cache may have lost what it said it had, so trying
again could acknowledge what is not there. `synced` only moves forward.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

import trio
from msgspec import Struct

from bookie.journal import format
from bookie.journal.files import JournalFile, JournalFiles
from bookie.statistics import Histogram
from core.errors import BrokerError, StorageFailed

GROUP_BYTES: Final = 1024 * 1024
"""A group takes no further hand-over once it has so many."""
BUFFER_BYTES: Final = 1024 * 1024
UNSYNCED_SECONDS: Final = 1.0
"""Without `sync`, how often what was written is synced after all."""

Acked = Callable[[BrokerError | None], None]
Item = tuple[bytes, Acked | None]
Batch = tuple[list[Item], int]
"""What one sweep of the loop appended, and its bytes."""


class JournalStatistics(Struct, frozen=True):
    """A snapshot."""

    groups: int
    bytes_written: int
    queue_bytes: int
    sync_seconds: Histogram
    direct: bool
    mark: format.Mark


class Journal:
    """See the module's docstring. All methods are for the loop; `_run` and below for the thread."""

    def __init__(
        self,
        files: JournalFiles,
        first_id: int,
        size_max: int,
        *,
        synced: bool,
        on_failed: Callable[[str], None],
    ) -> None:
        self.queue_bytes = 0
        """Appended and not yet acknowledged."""
        self.failed: StorageFailed | None = None
        self.delivering: Callable[[], None] | None = None
        """Called before the first `acked` of one delivery: whoever owes replies may gather them."""
        self.delivered: Callable[[], None] | None = None
        """Called after the last `acked` of one delivery: whoever owes replies sends them now."""
        self._files = files
        self._size_max = size_max
        self._wait_sync = synced
        self._on_failed = on_failed
        self._token = trio.lowlevel.current_trio_token()
        self._pending: list[Item] = []
        self._pending_bytes = 0
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._buffer = mmap.mmap(-1, BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._file: JournalFile = files.create(first_id, synced=synced)
        self.synced = format.Mark(first_id, format.HEADER_BYTES)
        """Everything before it survives a crash."""
        self._groups = self._bytes_written = 0
        self._sync_seconds = Histogram.of_latency()
        self._synced_at = 0.0
        self._broken: StorageFailed | None = None
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    # -- the loop's side ----------------------------------------------------------------------

    def append(self, blob: bytes, acked: Acked | None) -> bool:
        """Take records for the next group; returns whether they are the first for it."""
        first = not self._pending
        self._pending.append((blob, acked))
        self._pending_bytes += len(blob)
        self.queue_bytes += len(blob)
        return first

    def hand_over(self) -> None:
        """Give the thread what was appended since the last call: once per sweep, not per append."""
        if self._pending:
            self._queue.put((self._pending, self._pending_bytes))
            self._pending = []
            self._pending_bytes = 0

    def stop(self) -> None:
        """Write and sync what is there, end the thread, wait for it. Blocks: not for the loop."""
        self._queue.put(None)
        self._thread.join()

    def statistics(self) -> JournalStatistics:
        return JournalStatistics(
            groups=self._groups,
            bytes_written=self._bytes_written,
            queue_bytes=self.queue_bytes,
            sync_seconds=self._sync_seconds.copy(),
            direct=self._file.direct,
            mark=self.synced,
        )

    def _deliver(self, batches: list[Batch], error: StorageFailed | None) -> None:
        """On the loop, after the sync."""
        if error is not None and self.failed is None:
            self.failed = error
            self._on_failed(str(error))
        if self.delivering is not None:
            self.delivering()
        for items, size in batches:
            self.queue_bytes -= size
            for _, acked in items:
                if acked is not None:
                    acked(error)
        if self.delivered is not None:
            self.delivered()

    # -- the thread's side --------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            batches, stopping = self._gather()
            if batches:
                if self._broken is None:
                    try:
                        self._commit(batches)
                    except OSError as error:
                        self._broken = StorageFailed(f"the journal cannot be written: {error}")
                    except Exception as error:  # noqa: BLE001 - our own mistake must not leave
                        # appends waiting for ever: it ends the process as a broken disk does.
                        self._broken = StorageFailed(f"the journal is broken: {error!r}")
                self._tell(batches)
            if stopping:
                break
        self._finish()

    def _gather(self) -> tuple[list[Batch], bool]:
        """Wait for one hand-over, then take what else is there."""
        queue = self._queue
        if not self._wait_sync and self._unsynced() and queue.empty():
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
        started = time.perf_counter()
        size = sum(size for _, size in batches)
        if self._file.position + size > self._size_max and (
            self._file.position > format.HEADER_BYTES
        ):
            self._roll()
        self._write(batches)
        self._groups += 1
        self._bytes_written += size
        if self._wait_sync:
            self._file.sync()
            self.synced = format.Mark(self._file.journal_id, self._file.position)
        elif time.monotonic() - self._synced_at >= UNSYNCED_SECONDS:
            self._sync_now()
        self._sync_seconds.add(time.perf_counter() - started)

    def _write(self, batches: list[Batch]) -> None:
        """Copy records into the aligned buffer, write it when full, pad the end of the group."""
        view = self._view
        fill = 0
        for items, _ in batches:
            for blob, _ in items:
                end = fill + len(blob)
                if end <= BUFFER_BYTES:
                    view[fill:end] = blob
                    fill = end
                else:
                    fill = self._write_through(blob, fill)
        padding = format.padding(self._file.position + fill)
        if fill + len(padding) > BUFFER_BYTES:
            fill = self._write_through(padding, fill)
        else:
            view[fill : fill + len(padding)] = padding
            fill += len(padding)
        if fill:
            self._file.write(view[:fill])

    def _write_through(self, blob: bytes, fill: int) -> int:
        """Fill the buffer with a blob that does not fit, writing it each time it is full."""
        source = memoryview(blob)
        while source:
            room = min(BUFFER_BYTES - fill, len(source))
            self._view[fill : fill + room] = source[:room]
            source = source[room:]
            fill += room
            if fill == BUFFER_BYTES:
                self._file.write(self._view)
                fill = 0
        return fill

    def _roll(self) -> None:
        """Go on in a new file, once the old one is whole and synced."""
        self._file.sync()
        journal_id = self._file.journal_id + 1
        self._file.close()
        self._file = self._files.create(journal_id, synced=self._wait_sync)
        self.synced = format.Mark(journal_id, format.HEADER_BYTES)

    def _unsynced(self) -> bool:
        return self._broken is None and (
            self.synced.offset != self._file.position
            or self.synced.journal_id != self._file.journal_id
        )

    def _sync_now(self) -> None:
        self._synced_at = time.monotonic()
        self._file.sync()
        self.synced = format.Mark(self._file.journal_id, self._file.position)

    def _finish(self) -> None:
        try:
            if self._unsynced():
                self._sync_now()
        except OSError as error:
            self._broken = StorageFailed(f"the journal cannot be synced: {error}")
            self._tell([])
        self._file.close()

    def _tell(self, batches: list[Batch]) -> None:
        try:
            self._token.run_sync_soon(self._deliver, batches, self._broken)
        except trio.RunFinishedError:  # nobody is left to hear it
            return
