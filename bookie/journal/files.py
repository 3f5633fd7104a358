"""Journal files: made, zeroed ahead, opened in the fastest way that is durable, used again.

Invariant: a file that bears a journal's name has its header, and behind its last group only zeros.
So a file is written whole under another name first, synced, then renamed, and the directory synced.

    *.txn         journals
    spare.dirty   an old journal on its way to be a spare: worth nothing after a crash
    spare.fresh   a journal in the making: likewise
    spare.<n>     header and zeros, as large as a journal may be: the next journal
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bookie.journal import format

CHUNK_BYTES: Final = 256 * 1024
"""Zeroes are written in pieces of this size: a sync beside them waits for one piece at most."""
FIRST_BYTES: Final = 256 * 1024
"""What a fresh file has at once; the rest is zeroed behind the writer's back."""
SPARE: Final = "spare."
DIRTY: Final = "spare.dirty"
FRESH: Final = "spare.fresh"

_ZEROS: Final = mmap.mmap(-1, CHUNK_BYTES)
"""Aligned to a page, as direct I/O wants it; never written to."""
_O_DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)
_O_DSYNC: Final[int] = getattr(os, "O_DSYNC", 0)


def sync_directory(directory: Path) -> None:
    """Make names durable: what was created, renamed or unlinked in it."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(fd: int) -> None:
    """Make a file's bytes durable with what this system has for it."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's cache
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def direct_works(directory: Path) -> bool:
    """Whether aligned writes can go past the page cache here and are durable when they return."""
    if not (_O_DIRECT and _O_DSYNC):
        return False
    probe = directory / "probe.direct"
    try:
        fd = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | _O_DIRECT | _O_DSYNC, 0o644)
    except OSError:
        probe.unlink(missing_ok=True)
        return False
    try:
        # The second write is aligned to 512 bytes and to no more: some disks want 4,096.
        os.pwrite(fd, memoryview(_ZEROS)[:1024], 0)
        os.pwrite(fd, memoryview(_ZEROS)[:512], 512)
    except OSError:
        return False
    finally:
        os.close(fd)
        probe.unlink(missing_ok=True)
    return True


def journals(directory: Path) -> list[int]:
    """Ids of the journals there, oldest first."""
    return sorted(
        format.journal_id(name) for name in os.listdir(directory) if name.endswith(format.SUFFIX)
    )


class JournalFiles:
    """The directory of the journals: gives the writer its files and takes old ones back.

    The journal's thread calls `create` while the checkpoint's calls `retire`: names of spares and
    their number change together, under a lock.
    """

    def __init__(self, directory: Path, *, size_max: int, ahead: int, spares_max: int) -> None:
        self.directory = directory
        self.direct = direct_works(directory)
        self._size_max = size_max
        self._ahead = ahead
        self._spares_max = spares_max
        self._spares = 0
        self._lock = threading.Lock()
        for unfinished in (DIRTY, FRESH):
            (directory / unfinished).unlink(missing_ok=True)
        for spare in sorted(directory.glob(SPARE + "*")):
            if self._spares < spares_max and spare.stat().st_size == size_max:
                os.replace(spare, directory / f"{SPARE}{self._spares}")
                self._spares += 1
            else:
                spare.unlink()

    def path(self, journal_id: int) -> Path:
        return self.directory / format.file_name(journal_id)

    def create(self, journal_id: int, *, synced: bool) -> JournalFile:
        """A journal of this id: a spare if there is one, else a fresh file. Durable on return."""
        path = self.path(journal_id)
        assert not path.exists(), "journal ids are never used twice"
        if self._take_spare(path):
            zeroed = self._size_max
        else:
            fresh = self.directory / FRESH
            zeroed = min(FIRST_BYTES, self._size_max)
            _write_zeroed(fresh, zeroed, direct=self.direct)
            os.replace(fresh, path)
        sync_directory(self.directory)
        return JournalFile(path, zeroed, self._ahead, direct=self.direct and synced)

    def _take_spare(self, path: Path) -> bool:
        with self._lock:
            if not self._spares:
                return False
            self._spares -= 1
            os.replace(self.directory / f"{SPARE}{self._spares}", path)
            return True

    def retire(self, journal_ids: list[int]) -> None:
        """These are not needed for a replay any more: keep a few as spares, unlink the others."""
        for journal_id in journal_ids:
            path = self.path(journal_id)
            if self._spares >= self._spares_max or path.stat().st_size < self._size_max // 2:
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (_O_DIRECT if direct else 0)
    fd = os.open(path, flags, 0o644)
    try:
        os.ftruncate(fd, size)
        _zero(fd, 0, size)
        head = mmap.mmap(-1, format.HEADER_BYTES)
        head[:] = format.HEADER
        os.pwrite(fd, head, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def _zero(fd: int, start: int, end: int, goes_on: Callable[[], bool] = lambda: True) -> None:
    view = memoryview(_ZEROS)
    while start < end and goes_on():
        size = min(CHUNK_BYTES, end - start)
        start += os.pwrite(fd, view[:size], start)


class JournalFile:
    """One journal open for writing; only whoever writes the journal calls it.

    Zeroes are kept ahead of `position` by a short-lived thread; a writer that is faster waits until
    `catch_up` has done it.
    """

    def __init__(self, path: Path, zeroed: int, ahead: int, *, direct: bool) -> None:
        self.journal_id = format.journal_id(path.name)
        self.position = format.HEADER_BYTES
        self.direct = direct
        """Whether a write is durable when it returns, so that `sync` has nothing to do."""
        flags = os.O_WRONLY | os.O_CLOEXEC | (_O_DIRECT | _O_DSYNC if direct else 0)
        self.fd = os.open(path, flags)
        self._path = path
        self._zeroed = zeroed
        self._ahead = ahead
        self._zeroing: threading.Thread | None = None
        self._closing = False

    def write(self, data: memoryview) -> None:
        """Append an aligned piece; OSError says that nothing of it may be believed."""
        end = self.position + len(data)
        if not self.is_zeroed(end):
            self.catch_up(end)
        while data:
            written = os.pwrite(self.fd, data, self.position)
            data = data[written:]
            self.advance(written)

    def is_zeroed(self, end: int) -> bool:
        return end <= self._zeroed

    def catch_up(self, end: int) -> None:
        """Have zeros up to `end`. Blocks."""
        self._join()
        if end > self._zeroed:
            target = (end + CHUNK_BYTES) // CHUNK_BYTES * CHUNK_BYTES
            _zero(self.fd, self._zeroed, target)
            self._zeroed = target

    def advance(self, written: int) -> None:
        """So much was written at `position`."""
        self.position += written
        if self._zeroed - self.position < self._ahead // 2 and self._zeroing is None:
            self._zeroing = threading.Thread(target=self._zero_ahead, name="journal-zeros")
            self._zeroing.start()

    def sync(self) -> None:
        if not self.direct:
            sync_file(self.fd)

    def close(self) -> None:
        self._closing = True
        self._join()
        os.close(self.fd)

    def _join(self) -> None:
        zeroing = self._zeroing
        if zeroing is not None:
            zeroing.join()
        self._zeroing = None

    def _zero_ahead(self) -> None:
        """Runs in its own thread. A failure here is no failure: `catch_up` will meet it again."""
        target = self._zeroed + min(self._ahead, max(2**20, self.position))
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | (_O_DIRECT if self.direct else 0))
        except OSError:
            return
        try:
            _zero(fd, self._zeroed, target, lambda: not self._closing)
            sync_file(fd)
            self._zeroed = target
        except OSError:
            return
        finally:
            os.close(fd)
            if not self._closing:
                self._zeroing = None
