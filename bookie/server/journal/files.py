"""Journal files: made, zeroed ahead, opened in the fastest way that is durable, used again.

Invariant: a file that bears a journal's name has its header, and behind its last group only zeros.
So a file is written whole under another name first, synced, then renamed, and the directory synced.

    *.txn         journals
    spare.dirty   an old journal on its way to be a spare: worth nothing after a crash
    spare.fresh   a journal in the making: likewise
    spare.<n>     header and zeros, as large as a journal may be: the next journal
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.durability import (
    DIRECT,
    DSYNC,
    aligned,
    direct_works,
    sync_directory,
    sync_file,
)
from magnetar.bookie.server.disk_usage import is_full
from magnetar.bookie.server.journal import inventory

PAGE_BYTES: Final = 4096
CHUNK_BYTES: Final = 1024 * 1024
"""Zeroes are written in pieces of this size: a sync beside them waits for one piece at most, which
takes the disk 0.7 ms. A megabyte costs 70 us of CPU this way, in pieces of 256 KB more than twice
as much, of 4 MB half as much; but then one sync in a hundred took 0.5 ms longer at 1,000 a second.
"""
FIRST_BYTES: Final = 256 * 1024
"""The size of the first file after a start, so that the start is quick."""
GROWTH: Final = 8
"""Each fresh file is so many times larger than the one before, up to the largest size."""
PIECES_MAX: Final = 1024
"""Of one vectored write, as systems have it."""
SPARE: Final = "spare."
DIRTY: Final = "spare.dirty"
FRESH: Final = "spare.fresh"

_ZEROS: Final = aligned(CHUNK_BYTES)
"""Never written to."""


def journals(directory: Path) -> list[int]:
    """Ids of the journals there, oldest first."""
    return sorted(
        journal_format.journal_id(name)
        for name in os.listdir(directory)
        if journal_format.is_journal(name)
    )


class JournalFiles:
    """The directory of the journals: gives the writer its files and takes old ones back.

    The journal's thread calls `create` while the checkpoint's calls `retire`: names of spares and
    their number change together, under a lock.
    """

    def __init__(self, directory: Path, *, size_max: int, spares_max: int) -> None:
        self.directory = directory
        self.direct = direct_works(directory)
        self._size_max = size_max
        self._fresh_bytes = min(FIRST_BYTES, size_max)
        self._spares_max = spares_max
        self._spares = 0
        self._lock = threading.Lock()
        self._sizes = {i: self.path(i).stat().st_size for i in journals(directory)}
        """What the inventory says, or is about to."""
        for unfinished in (DIRTY, FRESH):
            (directory / unfinished).unlink(missing_ok=True)
        for spare in sorted(directory.glob(SPARE + "*")):
            if self._spares < spares_max and spare.stat().st_size == size_max:
                os.replace(spare, directory / f"{SPARE}{self._spares}")
                self._spares += 1
            else:
                spare.unlink()

    def path(self, journal_id: int) -> Path:
        return self.directory / journal_format.file_name(journal_id)

    def create(self, journal_id: int, room: int = 0, *, synced: bool) -> JournalFile:
        """A journal that has room for a group of that size: a spare if there is one, else fresh.

        Durable on return. Blocks for as long as writing its zeros takes. What is not to be synced
        goes through the page cache, into room that is only reserved: of zeros that are written, the
        system would read a page before it changes a part of it.
        """
        path = self.path(journal_id)
        assert not path.exists(), "journal ids are never used twice"
        wanted = journal_format.HEADER_BYTES + room + 2 * journal_format.ALIGNMENT_BYTES
        if wanted <= self._size_max and self._take_spare(path):
            size = self._size_max
        else:
            size = max(self._fresh_bytes, -(-wanted // PAGE_BYTES) * PAGE_BYTES)
            self._fresh_bytes = min(self._fresh_bytes * GROWTH, self._size_max)
            fresh = self.directory / FRESH
            try:
                if synced:
                    _write_zeroed(fresh, size, direct=self.direct)
                else:
                    _reserve(fresh, size)
            except OSError:
                fresh.unlink(missing_ok=True)  # others lack the room that it would keep
                raise
            os.replace(fresh, path)
        try:
            sync_directory(self.directory)
            self._list(journal_id, size)
        except OSError as error:
            if is_full(error):  # what is full passes, and then this id is asked for again
                self._take_back(journal_id, size)
            raise
        return JournalFile(path, size, direct=self.direct and synced)

    def _take_back(self, journal_id: int, size: int) -> None:
        """It could not be listed, so nothing was written into it: a spare is one again."""
        path = self.path(journal_id)
        with self._lock:
            self._sizes.pop(journal_id, None)
            if size == self._size_max and self._spares < self._spares_max:
                os.replace(path, self.directory / f"{SPARE}{self._spares}")
                self._spares += 1
            else:
                path.unlink()

    def discard(self, file: JournalFile) -> None:
        """Nothing was written into it, and nothing will be."""
        self._strike([file.journal_id])
        file.discard()

    def _list(self, journal_id: int, size: int) -> None:
        with self._lock:
            self._sizes[journal_id] = size
            inventory.write(self.directory, self._sizes)

    def _strike(self, journal_ids: list[int]) -> None:
        with self._lock:
            for journal_id in journal_ids:
                self._sizes.pop(journal_id, None)
            inventory.write(self.directory, self._sizes)

    def _take_spare(self, path: Path) -> bool:
        with self._lock:
            if not self._spares:
                return False
            self._spares -= 1
            os.replace(self.directory / f"{SPARE}{self._spares}", path)
            return True

    def retire(self, journal_ids: list[int]) -> None:
        """These are not needed for a replay any more: keep a few as spares, unlink the others."""
        if journal_ids:
            self._strike(journal_ids)
        for journal_id in journal_ids:
            path = self.path(journal_id)
            if self._spares >= self._spares_max or path.stat().st_size != self._size_max:
                path.unlink()
                continue
            dirty = self.directory / DIRTY
            os.replace(path, dirty)
            sync_directory(self.directory)
            _write_zeroed(dirty, self._size_max, direct=self.direct)
            with self._lock:
                os.replace(dirty, self.directory / f"{SPARE}{self._spares}")
                self._spares += 1
            sync_directory(self.directory)


def _write_zeroed(path: Path, size: int, *, direct: bool) -> None:
    """Header, then zeros up to `size`; synced."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (DIRECT if direct else 0)
    fd = os.open(path, flags, 0o644)
    try:
        os.ftruncate(fd, size)
        _zero(fd, 0, size)
        head = aligned(journal_format.HEADER_BYTES)
        head[:] = journal_format.HEADER
        os.pwrite(fd, head, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def _reserve(path: Path, size: int) -> None:
    """Header, and room that reads as zeros; synced."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, size)
        if hasattr(os, "posix_fallocate"):  # macOS finds the room as it is used
            os.posix_fallocate(fd, 0, size)
        os.pwrite(fd, journal_format.HEADER, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def _zero(fd: int, start: int, end: int) -> None:
    while start < end:
        size = min(CHUNK_BYTES, end - start)
        start += os.pwrite(fd, _ZEROS[:size], start)


class JournalFile:
    """One journal open for writing; only whoever writes the journal calls it.

    It is zeroed to its end and never grows: a write never waits for the file system to find room.
    """

    def __init__(self, path: Path, size: int, *, direct: bool) -> None:
        self.journal_id = journal_format.journal_id(path.name)
        self.position = journal_format.HEADER_BYTES
        self.direct = direct
        """Whether a write is durable when it returns, so that `sync` has nothing to do."""
        flags = os.O_WRONLY | os.O_CLOEXEC | (DIRECT | DSYNC if direct else 0)
        self.fd = os.open(path, flags)
        self._size = size
        self._path = path

    @property
    def room(self) -> int:
        """A group, without its padding, may have so many bytes."""
        return self._size - self.position - 2 * journal_format.ALIGNMENT_BYTES

    @property
    def half_full(self) -> bool:
        return 2 * self.position >= self._size

    def write(self, data: memoryview) -> None:
        """Append an aligned piece; OSError says that nothing of it may be believed."""
        while data:
            written = os.pwrite(self.fd, data, self.position)
            self.position += written
            data = data[written:]

    def write_pieces(self, pieces: list[bytes]) -> None:
        """Likewise, what is aligned as a whole: not for direct writes."""
        for start in range(0, len(pieces), PIECES_MAX):
            some = pieces[start : start + PIECES_MAX]
            written = os.pwritev(self.fd, some, self.position)
            self.position += written
            if written < sum(map(len, some)):
                self.write(memoryview(b"".join(some))[written:])

    def sync(self) -> None:
        if not self.direct:
            sync_file(self.fd)

    def close(self) -> None:
        os.close(self.fd)

    def discard(self) -> None:
        """Nothing was written into it, and nothing will be."""
        assert self.position == journal_format.HEADER_BYTES, "a journal that holds something"
        os.close(self.fd)
        self._path.unlink()
