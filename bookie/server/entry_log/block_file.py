"""A file that is written in whole blocks from its beginning on, past the page cache if that works.

Theory. Appends gather in an aligned buffer, which is written when it is full. `flush` writes what
is in it, filled up with zeros to a whole block; a last block that is not full stays in the buffer
and is written again, longer, with what comes behind it. Without direct I/O the same calls go
through the page cache.

Why past it: most of what is written here is not read again from memory, and finding a page of the
cache for it costs more than writing it (`docs/decisions/0010-entry-logs-past-the-page-cache.md`).

Invariants: after `flush` all that was appended can be read, and behind it are only zeros, less than
a block of them; what has been written once is only ever written again as the same bytes.
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.machine.memory import aligned
from magnetar.core.ports.disk import Creation, Directory, WriteMode

BLOCK_BYTES: Final = 4096
GATHER_BYTES: Final = 4 * 1024 * 1024
"""A megabyte costs 43 us of CPU in writes of this size, in those of 1 MB twice that. What is synced
beside them is as late with both (zeros for the journal are another matter: `journal/files.py`).
"""
RESERVED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Blocks of the disk set aside at once; a small file gets as much as it has, and stays small."""


class BlockFile:
    """See the module's docstring. After OSError from a write nobody knows how the file ends."""

    def __init__(self, directory: Directory, name: str) -> None:
        mode = WriteMode.DIRECT if directory.direct else WriteMode.CACHED
        self._file = directory.open_for_writing(name, Creation.NEW, mode)
        self.size = 0
        """Of all that was appended."""
        self._buffer = aligned(GATHER_BYTES)
        self._start = 0
        """Where in the file the buffer belongs."""
        self._flushed = 0
        self._end = 0
        """Of the file: how far whole writes reach."""
        self._reserved = 0

    def append(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            at = self.size - self._start
            taken = min(len(rest), GATHER_BYTES - at)
            self._buffer[at : at + taken] = rest[:taken]
            self.size += taken
            rest = rest[taken:]
            if at + taken == GATHER_BYTES:
                self._write(GATHER_BYTES)
                self._start = self._flushed = self.size

    def flush(self) -> None:
        """Let readers see what was appended; that does not make it durable."""
        if self._flushed == self.size:
            return
        end = self.size - self._start
        up = -(-end // BLOCK_BYTES) * BLOCK_BYTES
        self._buffer[end:up] = bytes(up - end)
        self._write(up)
        self._flushed = self.size
        full = end // BLOCK_BYTES * BLOCK_BYTES
        if full:
            self._buffer[: end - full] = bytes(self._buffer[full:end])
            self._start += full

    def _write(self, size: int) -> None:
        """Write so much of the buffer to where it belongs."""
        start, end = self._start, self._start + size
        while self._reserved < end:
            step = min(max(end, GATHER_BYTES), RESERVED_BYTES_MAX)
            self._file.reserve(self._reserved, step)
            self._reserved += step
        while start < end:
            start += self._file.pwrite(self._buffer[start - self._start : size], start)
        self._end = max(self._end, end)

    def cut(self) -> None:
        """End the file where what was flushed ends: no zeros behind it, and nothing reserved."""
        self._file.truncate(self._flushed)

    def give_back(self) -> None:
        """Keep no blocks behind the end: nothing more will be written."""
        self._file.truncate(self._end)

    def replace_head(self, data: bytes) -> None:
        """Write other bytes at the beginning, when nothing more is appended."""
        self._buffer[: len(data)] = data
        written = 0
        while written < len(data):
            written += self._file.pwrite(self._buffer[written : len(data)], written)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()
