"""The journal as the bookie sees it: append, hand over, learn that it is durable.

    append(blob, acked) ...  hand_over()  ->  a group is written and synced  ->  acked(None) for
    each append of the group, in order

The kernel writes by itself where it can (`kernel_writer.py`), else a thread (`thread_writer.py`).
In both, what comes during one sync makes the next group. Where appends do not wait for the disk,
the loop writes at once (`loop_writer.py`).

Invariants: `acked(None)` is called only after the sync that covers the append, if `settings.sync`
says so, and never from within `append`. After a failed write or sync nothing is written any more:
the page cache may have lost what it said it had, so trying again could acknowledge what is not
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.journal.groups import BATCH_BYTES_MAX, Batch, CommitGroups, Item
from magnetar.bookie.server.journal.kernel_writer import KernelWriter
from magnetar.bookie.server.journal.loop_writer import LoopWriter
from magnetar.bookie.server.journal.thread_writer import ThreadWriter
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import Histogram
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.ledger_store import Done
from magnetar.core.ports.machine import Machine


class JournalStatistics(Struct, frozen=True):
    """A snapshot."""

    groups: int
    bytes_written: int
    queue_bytes: int
    sync_seconds: Histogram
    direct: bool
    mark: journal_format.Mark


class JournalWriter(Protocol):
    """Writes groups, one after the other, and delivers each when it is durable or has failed."""

    def put(self, batch: Batch) -> None: ...

    async def stop(self) -> None:
        """Write, sync and deliver what is there; nothing may be put any more."""
        ...


def _parts(items: list[Item]) -> Iterator[Batch]:
    """Cut a long batch: what thousands of topics had waiting for a ledger comes in one sweep.

    An item without `acked` stays with what follows: it may be the beginning of a record.
    """
    part: list[Item] = []
    unit: list[Item] = []
    part_bytes = unit_bytes = 0
    for item in items:
        unit.append(item)
        unit_bytes += len(item[0])
        if item[1] is None:
            continue
        if part and part_bytes + unit_bytes > BATCH_BYTES_MAX:
            yield part, part_bytes
            part, part_bytes = [], 0
        part += unit
        part_bytes += unit_bytes
        unit, unit_bytes = [], 0
    yield part + unit, part_bytes + unit_bytes


class Journal:
    """See the module's docstring. All of it is for the loop."""

    def __init__(
        self,
        files: JournalFiles,
        first_id: int,
        settings: BookieSettings,
        on_failed: Callable[[str], None],
        on_full: Callable[[], None],
        machine: Machine,
    ) -> None:
        """`on_failed`: called once, nothing is written from then on. `on_full`: called when the
        disk had no room; what was appended is refused, later appends may not be.
        """
        self.queue_bytes = 0
        """Appended and not yet acknowledged."""
        self.failed: StorageFailed | None = None
        self._on_failed = on_failed
        self._on_full = on_full
        self._pending: list[Item] = []
        self._pending_bytes = 0
        self._machine = machine
        self._groups = CommitGroups(files, first_id, machine, wait_sync=settings.sync)
        self._loop: EventLoop
        self._writer: JournalWriter

    def start(self, loop: EventLoop) -> None:
        """Deliver on this loop. Where the kernel does not write by itself, a thread writes; where
        appends do not wait for the disk, neither is needed.
        """
        groups, threads = self._groups, self._machine.threads
        self._loop = loop
        if not groups.wait_sync:
            self._writer = LoopWriter(groups, self._deliver, threads)
            return
        if groups.file.direct:
            writes = self._machine.disk.submitted_writes(groups.buffer)
            if writes is not None:
                self._writer = writer = KernelWriter(groups, writes, self._deliver, threads)
                loop.watch(writes.descriptor, writer.ended, lambda: writes.busy)
                return
        self._writer = ThreadWriter(groups, self._deliver, threads)

    def append(self, blob: bytes, acked: Done | None, apart: bytes = b"") -> bool:
        """Take records for the next group; returns whether they are the first for it. What belongs
        behind the blob may lie `apart` from it.
        """
        first = not self._pending
        size = len(blob) + len(apart)
        if apart:
            self._pending.append((blob, None))
            blob = apart
        self._pending.append((blob, acked))
        self._pending_bytes += size
        self.queue_bytes += size
        return first

    def hand_over(self) -> None:
        """Have written what was appended since the last call: once per sweep, not per append."""
        if self._pending:
            batch = (self._pending, self._pending_bytes)
            self._pending = []
            self._pending_bytes = 0
            if batch[1] <= BATCH_BYTES_MAX:
                self._writer.put(batch)
            else:
                for part in _parts(batch[0]):
                    self._writer.put(part)

    async def stop(self) -> None:
        """Write, sync and acknowledge what is there. Nothing may be appended any more."""
        self.hand_over()
        await self._writer.stop()

    @property
    def synced(self) -> journal_format.Mark:
        """Everything before it survives a crash."""
        return self._groups.synced

    def statistics(self) -> JournalStatistics:
        groups = self._groups
        return JournalStatistics(
            groups=groups.count,
            bytes_written=groups.bytes_written,
            queue_bytes=self.queue_bytes,
            sync_seconds=groups.seconds.copy(),
            direct=groups.file.direct,
            mark=groups.synced,
        )

    def _deliver(self, batches: list[Batch], error: StorageFailed | None) -> None:
        """After the sync."""
        if isinstance(error, StorageFull):
            self._on_full()
        elif error is not None and self.failed is None:
            self.failed = error
            self._on_failed(str(error))
        self._loop.begin()
        for items, size in batches:
            self.queue_bytes -= size
            for _, acked in items:
                if acked is not None:
                    acked(error)
        self._loop.settle()
