"""Appends records to entry logs. One thread at a time.

Appends go to the disk in large pieces (`block_file.py`), so that a sync has little to do and no
burst of writes delays those of the journal. Blocks are reserved ahead of the end: allocating them
piece by piece costs a quarter of the writing. The next start frees what a crash left reserved.

Invariants: no byte of an earlier log is ever changed; all appends before a `sync` that returned are
durable, in whatever log they are; after a failed sync none succeeds; ids only grow, also across
restarts (the file `lastId`, as in `DefaultEntryLogger.java`, and the names in the directory).
"""

from __future__ import annotations

import errno
from typing import Final

from magnetar.bookie.format import entry_log as log_format
from magnetar.bookie.format.entries import LENGTH_BYTES, Run
from magnetar.bookie.format.locations import split
from magnetar.bookie.server.entry_log.block_file import BlockFile
from magnetar.bookie.server.log_directories import LogDirectories
from magnetar.bookie.server.small_files import read_whole, size_of, write_all, write_whole
from magnetar.core.ports.disk import Creation, Directory, WriteFile

LAST_ID: Final = "lastId"
REPEATED_LOGS_MAX: Final = 64
"""The most earlier logs that are open because runs of theirs were written once more."""


def log_ids(directory: Directory) -> list[int]:
    """Ids of the entry logs there, oldest first."""
    return sorted(log_format.log_id(name) for name in directory.names() if log_format.is_log(name))


class EntryLogWriter:
    """The log that is being written, created when there is something to write."""

    def __init__(self, directory: Directory, size_max: int) -> None:
        self.directory = directory
        self._spread = directory if isinstance(directory, LogDirectories) else None
        self.log_id = -1
        """The log that is being written, -1 if there is none."""
        self._size_max = size_max
        self._file: BlockFile | None = None
        self._visible = False
        """Whether readers may have read from the current log."""
        self._ledgers: dict[int, int] = {}
        self._aside: list[BlockFile] = []
        """Logs that ended in a failed write: the next sync must cover them."""
        self._repeated: dict[int, WriteFile] = {}
        """Earlier logs in which runs were written once more: the next sync must cover them."""
        self._failed = False
        self._next_id = self._first_free_id()

    def _first_free_id(self) -> int:
        ids = log_ids(self.directory)
        if ids:
            self._give_back(ids[-1])
        return max([self._last_id(), *ids]) + 1

    def _last_id(self) -> int:
        """The id in `lastId`; -1 if that is missing or damaged, since logs' names suffice."""
        try:
            last = int(read_whole(self.directory, LAST_ID), 16)
        except (FileNotFoundError, ValueError):
            return -1
        return last if last <= log_format.LOG_ID_MAX else -1

    def _give_back(self, log_id: int) -> None:
        name = log_format.file_name(log_id)
        file = self.directory.open_for_writing(name, Creation.EXISTING)
        try:
            file.truncate(size_of(self.directory, name))
        finally:
            file.close()

    def append(self, run: Run) -> int:
        """Add a run's records; returns the location of its first entry, readable after `flush`."""
        size = run.size
        if self._file is None or self._file.size + size > self._size_max:
            self.finish()
            self._file = self._begin()
        location = (self.log_id << 32) | (self._file.size + 4)
        self._file.append(run.blob)
        if run.apart:
            self._file.append(run.apart)
        self._ledgers[run.ledger_id] = self._ledgers.get(run.ledger_id, 0) + size
        return location

    def repeat(self, run: Run, location: int) -> None:
        """Write a run once more where a log of an earlier start has it already, without using more
        of the disk.

        What can be read there may not be on the disk: the system may have failed to write it, and
        have forgotten that (see `_sync`).
        """
        log_id, offset = split(location)
        assert log_id != self.log_id, "of an earlier start"
        file = self._repeated.get(log_id)
        if file is None:
            if len(self._repeated) == REPEATED_LOGS_MAX:
                self._sync_repeated()
            name = log_format.file_name(log_id)
            file = self.directory.open_for_writing(name, Creation.EXISTING)
            self._repeated[log_id] = file
        write_all(file, run.blob, offset - LENGTH_BYTES)

    def _sync_repeated(self) -> None:
        while self._repeated:
            log_id = next(iter(self._repeated))
            self._sync(self._repeated[log_id])
            self._repeated.pop(log_id).close()

    def move_on(self) -> None:
        """End the log being written if its disk is too full, and another directory's is not."""
        if self._spread is None or self._file is None:
            return
        if self._spread.is_left(log_format.file_name(self.log_id)):
            self.finish()

    def flush(self) -> None:
        """Make all appends readable, which does not make them durable."""
        if self._file is not None:
            self._file.flush()
            self._visible = True

    def sync(self) -> None:
        """Make all appends durable."""
        if self._file is not None:
            self.flush()
            self._sync(self._file)
        while self._aside:
            self._sync(self._aside[-1])
            self._aside.pop().close()
        self._sync_repeated()

    def _sync(self, file: BlockFile | WriteFile) -> None:
        """A sync that failed is never tried again: Linux marks the pages it could not write as
        clean, so that the next sync succeeds without them (the PostgreSQL "fsyncgate" of 2018).
        Only the journal has the entries then, and the next start replays it.
        """
        if self._failed:
            raise OSError(errno.EIO, "an entry log could not be synced before")
        try:
            file.sync()
        except OSError as error:
            self._failed = True
            raise OSError(errno.EIO, f"an entry log cannot be synced: {error}") from error

    def finish(self) -> None:
        """End the log being written: map, header, sync. No log is written until the next append."""
        file = self._file
        if file is None:
            return
        map_offset = file.size
        file.append(log_format.ledgers_map(self._ledgers))
        file.flush()
        file.cut()
        self._sync(file)
        file.replace_head(log_format.header(map_offset, len(self._ledgers)))
        self._sync(file)
        file.close()
        self._forget()

    def set_aside(self) -> None:
        """End the current log after a failed write.

        It is synced with the next one if readers may have read from it. Otherwise it is removed, or
        a disk that stays full would get another log each second.
        """
        if self._file is not None:
            if self._visible:
                self._file.give_back()
                self._aside.append(self._file)
            else:
                self._file.close()
                self.directory.remove(log_format.file_name(self.log_id))
        self._forget()

    def abandon(self) -> None:
        """Close all logs without a sync: what is not synced is still in the journal."""
        if self._file is not None:
            self._file.close()
        self._forget()
        while self._aside:
            self._aside.pop().close()
        while self._repeated:
            self._repeated.popitem()[1].close()

    def _forget(self) -> None:
        self._file = None
        self._visible = False
        self.log_id = -1
        self._ledgers = {}

    def _begin(self) -> BlockFile:
        log_id = self._next_id
        write_whole(self.directory, LAST_ID, f"{log_id:x}".encode())
        self.log_id = log_id
        file = BlockFile(self.directory, log_format.file_name(log_id))
        self._next_id = log_id + 1
        file.append(log_format.header())
        self.directory.sync()
        return file
