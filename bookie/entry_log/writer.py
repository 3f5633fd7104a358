"""Appends records to entry logs. One thread at a time.

Invariant: a log is never written again once it is finished; what was written before `sync` returned
is durable; ids only grow, also across restarts (`lastId`, and the names in the directory).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bookie.entries import Run
from bookie.entry_log import format
from bookie.journal.files import sync_directory, sync_file

GATHER_BYTES: Final = 1024 * 1024
"""Gathered before it is written."""
PIECES_MAX: Final = 512
"""In one vectored write; systems take 1,024 at most."""
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
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._ledgers: dict[int, int] = {}
        self._next_id = self._first_free_id()

    def _first_free_id(self) -> int:
        ids = log_ids(self.directory)
        try:
            last = int((self.directory / LAST_ID).read_text(), 16)
        except FileNotFoundError:
            last = -1
        return max([last, *ids]) + 1

    def append(self, run: Run) -> int:
        """Add a run's records; returns the location of its first entry."""
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
            self._write_out()
        return location

    def sync(self) -> None:
        """Make all that was appended durable."""
        if self._fd >= 0:
            self._write_out()
            sync_file(self._fd)

    def finish(self) -> None:
        """End the log being written: map, header, sync. No log is written until the next append."""
        if self._fd < 0:
            return
        self._write_out()
        map_offset = self._position
        _write_all(self._fd, format.ledgers_map(self._ledgers))
        sync_file(self._fd)
        os.pwrite(self._fd, format.header(map_offset, len(self._ledgers)), 0)
        sync_file(self._fd)
        self.abandon()

    def abandon(self) -> None:
        """Write no more to this log, whatever state it is in."""
        if self._fd >= 0:
            os.close(self._fd)
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
        self._position = format.HEADER_BYTES
        sync_directory(self.directory)

    def _write_out(self) -> None:
        if self._gathered:
            for at in range(0, len(self._gathered), PIECES_MAX):
                _write_pieces(self._fd, self._gathered[at : at + PIECES_MAX])
            self._gathered.clear()
            self._gathered_bytes = 0


def _write_pieces(fd: int, pieces: list[bytes]) -> None:
    """One call, and no copy of ours, unless the disk takes less than all."""
    written = os.writev(fd, pieces)
    if written < sum(map(len, pieces)):
        _write_all(fd, b"".join(pieces)[written:])


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
