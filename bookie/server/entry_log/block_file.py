"""A file that is written sequentially in whole blocks, with direct I/O where that works.

Appends gather in an aligned buffer, which is written when it is full. `flush` writes its contents,
padded with zeros to a whole block; a last block that is not full stays in the buffer, and is
written again with the bytes that follow. Without direct I/O the same calls go through the page
cache.

Why direct I/O: most of the data is not read again soon, and finding pages of the cache for it costs
more than writing it (`docs/decisions/0010-entry-logs-past-the-page-cache.md`). Apache has an
optional direct writer of entry logs for the same reason (BP-47, `dbStorage_directIOEntryLogger`).

Invariants: after `flush` everything appended can be read, and fewer than a block of zeros follow;
bytes that were written once are only written again unchanged.
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.machine.memory import aligned
from magnetar.core.ports.disk import Creation, Directory, WriteMode

BLOCK_BYTES: Final = 4096
GATHER_BYTES: Final = 4 * 1024 * 1024
"""A megabyte costs 43 us of CPU in writes of this size, and twice that in writes of 1 MB. Syncs of
the journal are delayed equally by both (unlike by its zeros: `journal/files.py`).
"""
RESERVED_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most bytes reserved ahead at once. A smaller file reserves as many bytes as it has."""


class BlockFile:
    """See the module's docstring. After OSError from a write the end of the file is unknown."""

    def __init__(self, directory: Directory, name: str) -> None:
        mode = WriteMode.DIRECT if directory.direct else WriteMode.CACHED
        self._file = directory.open_for_writing(name, Creation.NEW, mode)
        self.size = 0
        """Bytes appended."""
        self._buffer = aligned(GATHER_BYTES)
        self._start = 0
        """The buffer's offset in the file."""
        self._flushed = 0
        self._end = 0
        """The end of all whole writes, in the file."""
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
        """Make all appends readable, which does not make them durable."""
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
        """Write the first `size` bytes of the buffer."""
        start, end = self._start, self._start + size
        while self._reserved < end:
            step = min(max(end, GATHER_BYTES), RESERVED_BYTES_MAX)
            self._file.reserve(self._reserved, step)
            self._reserved += step
        while start < end:
            start += self._file.pwrite(self._buffer[start - self._start : size], start)
        self._end = max(self._end, end)

    def cut(self) -> None:
        """End the file at the flushed bytes: no zeros follow, and nothing stays reserved."""
        self._file.truncate(self._flushed)

    def give_back(self) -> None:
        """Free the reserved blocks behind the end; nothing more is written."""
        self._file.truncate(self._end)

    def replace_head(self, data: bytes) -> None:
        """Overwrite the beginning of the file, when nothing more is appended."""
        self._buffer[: len(data)] = data
        written = 0
        while written < len(data):
            written += self._file.pwrite(self._buffer[written : len(data)], written)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()
