"""Appends records to entry logs. One thread at a time.

What is appended goes to the page cache in large pieces and from there to the disk at once, so that
a sync finds little to do and no burst of writes stands before the journal's. Blocks are reserved
ahead of the end: finding them piece by piece costs a quarter of the writing. What a crash left
reserved is given back by the next start.

Invariant: a log is never written again once it is finished; what was written before `sync` returned
is durable, whichever log it is in, and after a sync that failed none succeeds; ids only grow, also
across restarts (`lastId`, and the names in the directory).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from bookie import extents
from bookie.entries import Run
from bookie.entry_log import format
from bookie.journal.files import sync_directory, sync_file

GATHER_BYTES: Final = 1024 * 1024
"""Gathered before it is written."""
PIECES_MAX: Final = 512
"""In one vectored write; systems take 1,024 at most."""
RESERVED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Blocks set aside at once; a small log is given as much as it has, so that it stays small."""
LAST_ID: Final = "lastId"


def log_ids(directory: Path) -> list[int]:
    """Ids of the entry logs there, oldest first."""
    return sorted(
        format.log_id(name) for name in os.listdir(directory) if name.endswith(format.SUFFIX)
    )


class EntryLogWriter:
    """The log that is being written, made when there is something to write."""

    def __init__(self, directory: Path, size_max: int) -> None:
        self.directory = directory
        self.log_id = -1
        """Of the log being written, -1 if there is none."""
        self._size_max = size_max
        self._fd = -1
        self._position = 0
        self._written = 0
        """Where in the log the next piece goes; what is gathered ends at `_position`."""
        self._reserved = 0
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._ledgers: dict[int, int] = {}
        self._aside: list[int] = []
        """Logs that ended in a failure and hold what the next sync must cover."""
        self._failed = False
        self._next_id = self._first_free_id()

    def _first_free_id(self) -> int:
        ids = log_ids(self.directory)
        try:
            last = int((self.directory / LAST_ID).read_text(), 16)
        except FileNotFoundError:
            last = -1
        if ids:
            self._give_back(ids[-1])
        return max([last, *ids]) + 1

    def _give_back(self, log_id: int) -> None:
        path = self.directory / format.file_name(log_id)
        os.truncate(path, path.stat().st_size)

    def append(self, run: Run) -> int:
        """Add a run's records; returns the location of its first entry, readable after `flush`."""
        size = len(run.blob)
        if self._fd < 0 or self._position + size > self._size_max:
            self.finish()
            self._begin()
        location = (self.log_id << 32) | (self._position + 4)
        self._gathered.append(run.blob)
        self._gathered_bytes += size
        self._position += size
        self._ledgers[run.ledger_id] = self._ledgers.get(run.ledger_id, 0) + size
        if self._gathered_bytes >= GATHER_BYTES:
            self.flush()
        return location

    def flush(self) -> None:
        """Give everybody what was appended to read; it is not durable by that."""
        if not self._gathered:
            return
        self._reserve()
        for at in range(0, len(self._gathered), PIECES_MAX):
            _write_pieces(self._fd, self._gathered[at : at + PIECES_MAX])
        extents.start_writing(self._fd, self._written, self._position - self._written)
        self._written = self._position
        self._gathered.clear()
        self._gathered_bytes = 0

    def _reserve(self) -> None:
        while self._reserved < self._position:
            step = min(max(self._position, GATHER_BYTES), RESERVED_BYTES_MAX)
            extents.reserve(self._fd, self._reserved, step)
            self._reserved += step

    def sync(self) -> None:
        """Make all that was appended durable."""
        if self._fd >= 0:
            self.flush()
            self._sync(self._fd)
        while self._aside:
            self._sync(self._aside[-1])
            os.close(self._aside.pop())

    def _sync(self, fd: int) -> None:
        """Never tried again: the page cache may have dropped what it failed to write, and so has
        the write cache. Only the journal has it then, and the next start replays that.
        """
        if self._failed:
            raise OSError(errno.EIO, "an entry log could not be synced before")
        try:
            sync_file(fd)
        except OSError as error:
            self._failed = True
            raise OSError(errno.EIO, f"an entry log cannot be synced: {error}") from error

    def finish(self) -> None:
        """End the log being written: map, header, sync. No log is written until the next append."""
        if self._fd < 0:
            return
        self.flush()
        map_offset = self._position
        _write_all(self._fd, format.ledgers_map(self._ledgers))
        os.ftruncate(self._fd, os.fstat(self._fd).st_size)  # gives back what was reserved
        self._sync(self._fd)
        os.pwrite(self._fd, format.header(map_offset, len(self._ledgers)), 0)
        self._sync(self._fd)
        os.close(self._fd)
        self._forget()

    def set_aside(self) -> None:
        """Write no more to this log, it failed in the middle; what it holds is synced with the
        next one.
        """
        if self._fd >= 0:
            self._aside.append(self._fd)
        self._forget()

    def abandon(self) -> None:
        """Leave it all as it is. What was not synced is nobody's to rely on."""
        self.set_aside()
        while self._aside:
            os.close(self._aside.pop())

    def _forget(self) -> None:
        self._fd = self.log_id = -1
        self._gathered.clear()
        self._gathered_bytes = 0
        self._ledgers = {}

    def _begin(self) -> None:
        log_id = self._next_id
        last_id = self.directory / (LAST_ID + ".new")
        last_id.write_text(f"{log_id:x}")
        os.replace(last_id, self.directory / LAST_ID)
        path = self.directory / format.file_name(log_id)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._next_id = log_id + 1
        self.log_id = log_id
        _write_all(self._fd, format.header())
        self._position = self._written = self._reserved = format.HEADER_BYTES
        sync_directory(self.directory)


def _write_pieces(fd: int, pieces: list[bytes]) -> None:
    """One call, and no copy of ours, unless the disk takes less than all."""
    written = os.writev(fd, pieces)
    if written < sum(map(len, pieces)):
        _write_all(fd, b"".join(pieces)[written:])


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
