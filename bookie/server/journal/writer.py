"""The journal's interface for the bookie: append, hand over, be called when it is durable.

    append(blob, acked) ...  hand_over()  ->  a group is written and synced  ->  acked(None) for
    each append of the group, in order

The kernel writes asynchronously where it can (`kernel_writer.py`), else a thread writes
(`thread_writer.py`). In both, the appends during one sync make the next group. Where appends do not
wait for the disk (Apache's `journalSyncData=false`), the loop writes at once (`loop_writer.py`).

A slow sync is followed by a large group: thousands of clients that wait, each for a reply on its
own connection. They are called some at a time, so that the loop turns between.

Invariants: `acked(None)` is never called from within `append`, and with `settings.sync` only after
the sync that covers the append. After a failed write or sync nothing is written any more: the page
cache may have dropped the data (see `EntryLogWriter._sync`), so a second sync that succeeds proves
nothing. Apache's journal thread ends after an IOException too (`Journal.run` of 4.18).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Final, Protocol

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.server.journal.files import JournalFiles
from magnetar.bookie.server.journal.groups import BATCH_BYTES_MAX, Batch, CommitGroups, Item
from magnetar.bookie.server.journal.kernel_writer import KernelWriter
from magnetar.bookie.server.journal.loop_writer import LoopWriter
from magnetar.bookie.server.journal.thread_writer import ThreadWriter
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import Histogram
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.ledger_store import Done
from magnetar.core.ports.machine import Machine

SLICE_SECONDS: Final = 0.002
"""How long calls are made before the loop turns. Sending the replies takes about twice as long."""
FEW: Final = 3
"""Appends of a group that are called at once: those of a few sweeps, a millisecond or two."""


class JournalStatistics(FrozenStruct, frozen=True):
    """A snapshot."""

    groups: int
    bytes_written: int
    queue_bytes: int
    sync_seconds: Histogram
    direct: bool
    mark: journal_format.Mark


class JournalWriter(Protocol):
    """Writes groups one after the other, and delivers each when it is durable or has failed."""

    def put(self, batch: Batch) -> None: ...

    async def stop(self) -> None:
        """Write, sync and deliver all batches; nothing may be put afterwards."""
        ...


def _parts(items: list[Item]) -> Iterator[Batch]:
    """Cut a long batch: thousands of topics that waited for their ledgers append in one sweep.

    An item without a callback stays with its successor: it may be the first part of a record.
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
    """See the module's docstring. All methods are for the loop."""

    def __init__(
        self,
        files: JournalFiles,
        first_id: int,
        settings: BookieSettings,
        on_failed: Callable[[str], None],
        on_full: Callable[[], None],
        machine: Machine,
    ) -> None:
        """`on_failed` is called once: nothing is written from then on. `on_full` is called when the
        disk has no room: the appends so far are refused, later ones may succeed.
        """
        self.queue_bytes = 0
        """Bytes appended and not yet acknowledged."""
        self.failed: StorageFailed | None = None
        self._on_failed = on_failed
        self._on_full = on_full
        self._pending: list[Item] = []
        self._pending_bytes = 0
        self._machine = machine
        self._now = machine.clock.monotonic
        self._ended: deque[Iterator[tuple[Item, StorageFailed | None]]] = deque()
        """The appends that are durable or have failed, and are to be called."""
        self._calls = self._continues = False
        """Whether calls are being made now, and whether more follow when the loop has turned."""
        self._groups = CommitGroups(
            files, first_id, machine, wait_sync=settings.sync, seals=settings.journal_seals
        )
        self._loop: EventLoop
        self._writer: JournalWriter

    def start(self, loop: EventLoop) -> None:
        """Choose the writer, which delivers on this loop: the loop itself where appends do not wait
        for the disk, else the kernel where it can write asynchronously, else a thread.
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
        """Add records to the next group; returns whether they are its first. A payload that was not
        copied into the blob is given as `apart`.
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
        """Hand all appends since the last call to the writer: once per sweep, not per append."""
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
        """Write, sync and acknowledge all appends. Nothing may be appended afterwards."""
        self.hand_over()
        await self._writer.stop()
        while self._ended:
            self._call()

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
        """Call the callbacks of groups that are durable or have failed."""
        if isinstance(error, StorageFull):
            self._on_full()
        elif error is not None and self.failed is None:
            self.failed = error
            self._on_failed(str(error))
        if not self._ended and len(batches) == 1 and len(batches[0][0]) <= FEW:
            self._call_few(batches[0], error)
            return
        for items, _ in batches:
            self._ended.append(zip(items, repeat(error)))
        if not self._calls and not self._continues:
            self._call()

    def _call_few(self, batch: Batch, error: StorageFailed | None) -> None:
        """Call all of a small group: nobody looks at the clock."""
        items, size = batch
        self._loop.begin()
        self.queue_bytes -= size
        for _, acked in items:
            if acked is not None:
                acked(error)
        self._loop.settle()

    def _call(self) -> None:
        """Call those that wait, for a while; the others when the loop has turned."""
        self._calls, self._continues = True, False
        self._loop.begin()
        try:
            until = self._now() + SLICE_SECONDS
            while self._ended and self._call_until(self._ended[0], until):
                self._ended.popleft()
        finally:
            self._calls = False
        if self._ended:
            self._continues = True
            self._machine.threads.call_soon(self._call_rest)
        self._loop.settle()

    def _call_rest(self) -> None:
        if self._ended:  # else `stop` has done it
            self._call()

    def _call_until(
        self, appends: Iterator[tuple[Item, StorageFailed | None]], until: float
    ) -> bool:
        """Call the appends of a batch; returns whether they are all called."""
        for (blob, acked), error in appends:
            self.queue_bytes -= len(blob)
            if acked is not None:
                acked(error)
                if self._now() >= until:
                    return False
        return True
