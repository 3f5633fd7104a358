"""The end of the journal: its current file, and how appends become a group there.

A group is what Apache calls a batch of `toFlush` (`Journal.java` of 4.18), synced at once. Apache
may wait for more appends (`journalMaxGroupWaitMSec`); here a group is begun as soon as the one
before it is synced, and takes what has come meanwhile.

One writer uses it (`writer.py`): the journal's thread, or the loop.

Invariant: `synced` only moves forward, and only over durable bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.journal.files import JournalFile, JournalFiles
from magnetar.bookie.server.statistics import Histogram
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.ledger_store import Done
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.threads import Thread, Threads

GROUP_BYTES: Final = 1024 * 1024
"""A group of this size takes no further batch."""
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""The largest batch, unless one append alone is larger. So no group comes near the size that a scan
takes for two groups (`journal_scan.TEAR_BYTES_MAX`).
"""
BUFFER_BYTES: Final = 1024 * 1024
SMALL_BYTES: Final = 16 * 1024
"""A batch up to this size is copied into the buffer as one."""

Item = tuple[bytes, Done | None]
"""Bytes, and what to call when they are durable or have failed."""
Batch = tuple[list[Item], int]
"""The appends of one sweep of the loop, or a part of them, and their bytes."""


class CommitGroups:
    """See the module's docstring."""

    def __init__(
        self,
        files: JournalFiles,
        first_id: int,
        machine: Machine,
        *,
        wait_sync: bool,
        seals: bool = False,
    ) -> None:
        """`seals`: whether groups get a checksum, for notes, and entries with other digests."""
        self.file: JournalFile = files.create(first_id, 0, synced=wait_sync)
        self.synced = journal_format.Mark(first_id, journal_format.HEADER_BYTES)
        """Everything before it survives a crash."""
        self.wait_sync = wait_sync
        """Whether a group ends only when it is durable."""
        self._seals = seals
        self._checksum = 0
        """Of the group's records that have left the buffer."""
        self.count = self.bytes_written = 0
        self.seconds = Histogram.of_latency()
        """The time to write and sync each group."""
        self._ended = self.synced
        """The end of the last group that was written."""
        self.buffer = aligned(BUFFER_BYTES)
        """Holds each piece of a group while it is written."""
        self._threads = machine.threads
        self._now = machine.clock.monotonic
        self._next = _NextFile(files, machine.threads, wait_sync=wait_sync)
        self._started = 0.0

    def begin(self, size: int) -> bool:
        """Begin a group of `size` bytes; False if `roll` must be called first."""
        self._started = self._now()
        self.count += 1
        self.bytes_written += size
        return size <= self.file.room

    def can_roll(self, size: int) -> bool:
        """Whether `roll` would not block."""
        return self._next.is_ready(size)

    def roll(self, size: int) -> None:
        """Sync the old file and go on in a new one. May block."""
        self.file.sync()
        try:
            following = self._next.take(self.file.journal_id + 1, size)
        except OSError as error:
            if is_full(error):
                raise JournalFull(f"there is no room for the journal: {error.strerror}") from error
            raise
        # In a thread: closing the last descriptor for writing took 30 ms at times.
        self._threads.start(self.file.close, "journal-close")
        self.file = following
        self.synced = self._ended = journal_format.Mark(
            following.journal_id, journal_format.HEADER_BYTES
        )

    def pieces(self, batches: list[Batch]) -> Iterator[memoryview]:
        """Copy a group into the buffer, piece by piece; write each before the next is made."""
        piece = self.only_piece(batches)
        if piece is not None:
            yield piece
            return
        begin = self.file.position
        view = self.buffer
        fill = total = self._checksum = 0
        for items, size in batches:
            total += size
            for blob, _ in items:
                end = fill + len(blob)
                if end <= BUFFER_BYTES:
                    view[fill:end] = blob
                    fill = end
                else:
                    fill = yield from self._overflow(blob, fill)
        seal = b""
        if self._seals:
            seal = journal_format.seal(total, crc32c(view[:fill], self._checksum))
        padding = journal_format.padding(begin + total, seal)
        fill = yield from self._overflow(padding, fill)
        if fill:
            yield view[:fill]

    def only_piece(self, batches: list[Batch]) -> memoryview | None:
        """Copy a small group, that of a lone sweep, into the buffer at once; None if it is large:
        that costs one copy more.
        """
        items, size = batches[0]
        if len(batches) > 1 or size > SMALL_BYTES:
            return None
        records = [blob for blob, _ in items]
        end = journal_format.put_group(self.buffer, records, self.file.position, self._seals)
        return self.buffer[:end]

    def _overflow(self, blob: bytes, fill: int) -> Generator[memoryview, None, int]:
        """Copy a blob into the buffer, yielding the buffer each time it is full."""
        source = memoryview(blob)
        while source:
            room = min(BUFFER_BYTES - fill, len(source))
            self.buffer[fill : fill + room] = source[:room]
            source = source[room:]
            fill += room
            if fill == BUFFER_BYTES:
                if self._seals:
                    self._checksum = crc32c(self.buffer, self._checksum)
                yield self.buffer
                fill = 0
        return fill

    def padding(self, blobs: Sequence[bytes], end: int) -> bytes:
        """The padding of a group of these records, which end at `end` of the file."""
        if not self._seals:
            return journal_format.padding(end)
        checksum = size = 0
        for blob in blobs:
            checksum = crc32c(blob, checksum)
            size += len(blob)
        return journal_format.padding(end, journal_format.seal(size, checksum))

    def end(self) -> None:
        """End the group: it is written."""
        self._ended = journal_format.Mark(self.file.journal_id, self.file.position)
        if self.wait_sync:
            self.sync()
        if self.file.half_full:
            self._next.begin(self.file.journal_id + 1)
        self.seconds.add(self._now() - self._started)

    def sync(self) -> None:
        """Make all written groups durable; more may be written meanwhile. Blocks, unless the file's
        writes are durable by themselves.
        """
        ended = self._ended
        self.file.sync()
        self.synced = ended

    @property
    def unsynced(self) -> bool:
        return self.synced != self._ended

    def close(self) -> None:
        """Close the current file and discard the next one. Blocks while that is being made.

        If a full disk refuses to strike the next file from the inventory, it stays, and the next
        start finds it empty.
        """
        try:
            self._next.drop()
        except OSError as error:
            if not is_full(error):
                raise
        finally:
            self.file.close()


class JournalFull(Exception):
    """The disk has no room for another file. The group is not written; later groups may be."""


def failure(error: Exception) -> StorageFailed:
    """The error for the appends of a failed group. It is final, unless it is `StorageFull`."""
    if isinstance(error, JournalFull):
        return StorageFull(str(error))
    if isinstance(error, OSError):
        return StorageFailed(f"the journal cannot be written: {error}")
    return StorageFailed(f"the journal is broken: {error!r}")


class _NextFile:
    """The file after the current one, made by a thread.

    A failure to make it is ignored: `take` tries again, and raises it.
    """

    def __init__(self, files: JournalFiles, threads: Threads, *, wait_sync: bool) -> None:
        self._files = files
        self._threads = threads
        self._wait_sync = wait_sync
        self._making: Thread | None = None
        self._made: JournalFile | None = None

    def begin(self, journal_id: int) -> None:
        """Begin to make it, unless that was begun."""
        if self._making is None:
            self._making = self._threads.start(partial(self._make, journal_id), "journal-next")

    def _make(self, journal_id: int) -> None:
        with suppress(OSError):
            self._made = self._files.create(journal_id, 0, synced=self._wait_sync)

    def is_ready(self, size: int) -> bool:
        return self._made is not None and size <= self._made.room

    def take(self, journal_id: int, size: int) -> JournalFile:
        """The next file, with room for a group of that size. Blocks if it is not ready."""
        self._join()
        if self._made is not None and size > self._made.room:
            self.drop()
        made, self._made = self._made, None
        return made or self._files.create(journal_id, size, synced=self._wait_sync)

    def drop(self) -> None:
        """Discard it: it is not needed."""
        self._join()
        if self._made is not None:
            self._files.discard(self._made)
        self._made = None

    def _join(self) -> None:
        if self._making is not None:
            self._making.join()
        self._making = None
