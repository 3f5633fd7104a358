"""The end of the journal: which file it is in, and how appends become a group there.

One writer uses it (`writer.py`): the journal's thread, or the loop.
Invariant: `synced` only moves forward, and only over what is durable.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.journal.files import JournalFile, JournalFiles
from magnetar.bookie.server.statistics import Histogram
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.ledger_store import Done
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.threads import Thread, Threads

GROUP_BYTES: Final = 1024 * 1024
"""A group takes no further batch once it has so many."""
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""Of a batch, unless one append alone is larger: so no group comes near to what a scan takes for
two (`journal_scan.TEAR_BYTES_MAX`).
"""
BUFFER_BYTES: Final = 1024 * 1024

Item = tuple[bytes, Done | None]
"""Bytes, and what to call when they are durable or have failed."""
Batch = tuple[list[Item], int]
"""What one sweep of the loop appended, or a part of that, and its bytes."""


class CommitGroups:
    """See the module's docstring."""

    def __init__(
        self, files: JournalFiles, first_id: int, machine: Machine, *, wait_sync: bool
    ) -> None:
        self.file: JournalFile = files.create(first_id, 0, synced=wait_sync)
        self.synced = journal_format.Mark(first_id, journal_format.HEADER_BYTES)
        """Everything before it survives a crash."""
        self.wait_sync = wait_sync
        """Whether a group is over only when it is durable."""
        self.count = self.bytes_written = 0
        self.seconds = Histogram.of_latency()
        """How long each group took, to be written and synced."""
        self._ended = self.synced
        """The end of the last group that was written."""
        self.buffer = aligned(BUFFER_BYTES)
        """Of which each piece of a group is written."""
        self._threads = machine.threads
        self._now = machine.clock.monotonic
        self._next = _NextFile(files, machine.threads, wait_sync=wait_sync)
        self._started = 0.0

    def begin(self, size: int) -> bool:
        """A group of `size` bytes is to be written; False if `roll` must be called before it."""
        self._started = self._now()
        self.count += 1
        self.bytes_written += size
        return size <= self.file.room

    def can_roll(self, size: int) -> bool:
        """Whether `roll` would not block."""
        return self._next.is_ready(size)

    def roll(self, size: int) -> None:
        """Go on in a new file, once the old one is whole and synced. May block."""
        self.file.sync()
        try:
            following = self._next.take(self.file.journal_id + 1, size)
        except OSError as error:
            if is_full(error):
                raise JournalFull(f"there is no room for the journal: {error.strerror}") from error
            raise
        # Closing the last descriptor for writing took the file system 30 ms at times.
        self._threads.start(self.file.close, "journal-close")
        self.file = following
        self.synced = self._ended = journal_format.Mark(
            following.journal_id, journal_format.HEADER_BYTES
        )

    def pieces(self, batches: list[Batch]) -> Iterator[memoryview]:
        """Copy a group into the buffer; each piece must be written before the next is made."""
        view = self.buffer
        fill = 0
        begin = self.file.position
        total = 0
        for items, size in batches:
            total += size
            for blob, _ in items:
                end = fill + len(blob)
                if end <= BUFFER_BYTES:
                    view[fill:end] = blob
                    fill = end
                else:
                    fill = yield from self._overflow(blob, fill)
        padding = journal_format.padding(begin + total)
        fill = yield from self._overflow(padding, fill)
        if fill:
            yield view[:fill]

    def _overflow(self, blob: bytes, fill: int) -> Generator[memoryview, None, int]:
        """Fill the buffer with what may not fit, yielding it each time it is full."""
        source = memoryview(blob)
        while source:
            room = min(BUFFER_BYTES - fill, len(source))
            self.buffer[fill : fill + room] = source[:room]
            source = source[room:]
            fill += room
            if fill == BUFFER_BYTES:
                yield self.buffer
                fill = 0
        return fill

    def end(self) -> None:
        """The group was written."""
        self._ended = journal_format.Mark(self.file.journal_id, self.file.position)
        if self.wait_sync:
            self.sync()
        if self.file.half_full:
            self._next.begin(self.file.journal_id + 1)
        self.seconds.add(self._now() - self._started)

    def sync(self) -> None:
        """Make durable what was written; more may be written meanwhile. Blocks, unless the file's
        writes are durable anyway.
        """
        ended = self._ended
        self.file.sync()
        self.synced = ended

    @property
    def unsynced(self) -> bool:
        return self.synced != self._ended

    def close(self) -> None:
        """Blocks while the next file is being made. If a full disk lets none be struck from the
        inventory, it stays, and the next start finds it empty.
        """
        try:
            self._next.drop()
        except OSError as error:
            if not is_full(error):
                raise
        finally:
            self.file.close()


class JournalFull(Exception):
    """The disk has no room for another file. Nothing of the group is written; later ones may be."""


def failure(error: Exception) -> StorageFailed:
    """The error of the appends in a group that failed. Unless it is `StorageFull` it is final."""
    if isinstance(error, JournalFull):
        return StorageFull(str(error))
    if isinstance(error, OSError):
        return StorageFailed(f"the journal cannot be written: {error}")
    return StorageFailed(f"the journal is broken: {error!r}")


class _NextFile:
    """The file after the one that is written, made by a thread of its own.

    A failure to make it is met again in `take`.
    """

    def __init__(self, files: JournalFiles, threads: Threads, *, wait_sync: bool) -> None:
        self._files = files
        self._threads = threads
        self._wait_sync = wait_sync
        self._making: Thread | None = None
        self._made: JournalFile | None = None

    def begin(self, journal_id: int) -> None:
        """Have it made, if it is not yet."""
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
        """It will not be needed."""
        self._join()
        if self._made is not None:
            self._files.discard(self._made)
        self._made = None

    def _join(self) -> None:
        if self._making is not None:
            self._making.join()
        self._making = None
