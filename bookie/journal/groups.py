"""The end of the journal: which file it is in, and how appends become a group there.

It is used by whoever writes, the journal's thread or the loop (`writer.py`), by one of them only.
Invariant: `synced` only moves forward, and only over what is durable.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable, Generator, Iterator
from typing import Final

from bookie.journal import format
from bookie.journal.files import JournalFile, JournalFiles
from bookie.statistics import Histogram
from core.errors import BrokerError

GROUP_BYTES: Final = 1024 * 1024
"""A group takes no further hand-over once it has so many."""
BUFFER_BYTES: Final = 1024 * 1024

Acked = Callable[[BrokerError | None], None]
Item = tuple[bytes, Acked | None]
Batch = tuple[list[Item], int]
"""What one sweep of the loop appended, and its bytes."""


class Groups:
    """See the module's docstring."""

    def __init__(
        self, files: JournalFiles, first_id: int, size_max: int, *, wait_sync: bool
    ) -> None:
        self.file: JournalFile = files.create(first_id, synced=wait_sync)
        self.synced = format.Mark(first_id, format.HEADER_BYTES)
        """Everything before it survives a crash."""
        self.wait_sync = wait_sync
        """Whether a group is over only when it is durable."""
        self.count = self.bytes_written = 0
        self.seconds = Histogram.of_latency()
        """How long each group took, to be written and synced."""
        self._files = files
        self._size_max = size_max
        self._buffer = mmap.mmap(-1, BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._started = 0.0

    @property
    def buffer_address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))

    def begin(self, size: int) -> bool:
        """A group of `size` bytes is to be written; False if the file must be rolled before it."""
        self._started = time.perf_counter()
        self.count += 1
        self.bytes_written += size
        return (
            self.file.position + size <= self._size_max or self.file.position == format.HEADER_BYTES
        )

    def roll(self) -> None:
        """Go on in a new file, once the old one is whole and synced. Blocks."""
        self.file.sync()
        journal_id = self.file.journal_id + 1
        self.file.close()
        self.file = self._files.create(journal_id, synced=self.wait_sync)
        self.synced = format.Mark(journal_id, format.HEADER_BYTES)

    def pieces(self, batches: list[Batch]) -> Iterator[memoryview]:
        """Copy a group into the buffer; each piece must be written before the next is asked for."""
        view = self._view
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
        padding = format.padding(begin + total)
        fill = yield from self._overflow(padding, fill)
        if fill:
            yield view[:fill]

    def _overflow(self, blob: bytes, fill: int) -> Generator[memoryview, None, int]:
        """Fill the buffer with what may not fit, giving it away each time it is full."""
        source = memoryview(blob)
        while source:
            room = min(BUFFER_BYTES - fill, len(source))
            self._view[fill : fill + room] = source[:room]
            source = source[room:]
            fill += room
            if fill == BUFFER_BYTES:
                yield self._view
                fill = 0
        return fill

    def end(self) -> None:
        """The group was written."""
        if self.wait_sync:
            self.sync()
        self.seconds.add(time.perf_counter() - self._started)

    def sync(self) -> None:
        """Make durable what was written. Blocks, unless the file's writes are durable anyway."""
        self.file.sync()
        self.synced = format.Mark(self.file.journal_id, self.file.position)

    @property
    def unsynced(self) -> bool:
        return (
            self.synced.offset != self.file.position
            or self.synced.journal_id != self.file.journal_id
        )

    def close(self) -> None:
        self.file.close()
