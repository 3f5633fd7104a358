"""Files of this system, behind the ports `ReadFile` and `WriteFile`.

Frequent calls are not wrapped: `pwrite` and the vectored forms are functions of `os` with the
descriptor bound, so that the port costs no extra call.

Invariant: after `sync` returns, all bytes written before are on the disk.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final

from magnetar.bookie.machine import extents
from magnetar.core.kernel.long_slices import offer_core
from magnetar.core.ports.disk import Creation, WriteMode

DIRECT: Final[int] = getattr(os, "O_DIRECT", 0)
DSYNC: Final[int] = getattr(os, "O_DSYNC", 0)
RANDOM: Final[int] = getattr(os, "POSIX_FADV_RANDOM", 0)
WILL_NEED: Final[int] = getattr(os, "POSIX_FADV_WILLNEED", 0)
PIECE_BYTES: Final = 128 * 1024
"""Read ahead at a time: the system takes no more than the disk is set to, which is seldom less."""
AHEAD_BYTES_FAST: Final = 512 * 1024
"""Read ahead for who reads fast. Others may wait for it, half a millisecond of a disk with 1 GB/s,
so who works long on what was read, as a compaction does, has only one piece read ahead.
"""
JUDGED_BYTES: Final = 4 * 1024 * 1024
FAST_SECONDS: Final = 0.01
"""Who has read `JUDGED_BYTES` in this time reads fast."""

_CREATION: Final = {
    Creation.NEW: os.O_CREAT | os.O_EXCL,
    Creation.REPLACE: os.O_CREAT | os.O_TRUNC,
    Creation.EXISTING: 0,
}
_MODE: Final = {
    WriteMode.CACHED: 0,
    WriteMode.DIRECT: DIRECT,
    WriteMode.DIRECT_SYNC: DIRECT | DSYNC,
}


def sync_descriptor(fd: int) -> None:
    """Make a file's bytes durable with the right call of this system."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's cache (fsync(2))
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


class SystemReadFile:
    """A `ReadFile`. Where a read goes on from the one before, what comes next is read ahead. It may
    begin before that one's end, which was perhaps in the middle of an entry.

    The system would do that, too, and as far as the disk is set to: with 8 MB, which some machines
    have, a sync of the journal waits for 7 ms behind one reading ahead.

    A system call that reads or reads ahead keeps its core for 50 us, and who is woken meanwhile may
    have to wait for several of them; so the core is offered after each.
    """

    __slots__ = ("_ahead", "_direct", "_fd", "_judged", "_judged_at", "_next", "_window", "preadv")

    def __init__(self, path: str, *, direct: bool) -> None:
        self._fd = fd = _open_to_read(path, DIRECT if direct else 0)
        self.preadv: Callable[[Sequence[memoryview], int], int] = partial(os.preadv, fd)
        self._direct = direct
        # Hints from here on, which several threads that read may make guesses.
        self._next = -1
        """Where the last read ended."""
        self._ahead = 0
        """Where reading ahead ends."""
        self._window = PIECE_BYTES
        self._judged, self._judged_at = 0, 0.0
        """Where reads in a row began, or were judged last, and when."""
        if not direct:
            _advise(fd, 0, 0, RANDOM)  # to read what is asked for, and no more

    def pread(self, size: int, offset: int, /) -> bytes:
        data = os.pread(self._fd, size, offset)
        offer_core()
        end = offset + len(data)
        if not offset <= self._next <= end:
            self._ahead = self._judged = end
            self._judged_at, self._window = monotonic(), PIECE_BYTES
        elif data and not self._direct:
            self._read_ahead(end)
        self._next = end
        return data

    def _read_ahead(self, end: int) -> None:
        if end - self._judged >= JUDGED_BYTES:
            now = monotonic()
            is_fast = now - self._judged_at < FAST_SECONDS
            self._window = AHEAD_BYTES_FAST if is_fast else PIECE_BYTES
            self._judged, self._judged_at = end, now
        if self._ahead - end < self._window // 2:
            begin = max(self._ahead, end)
            self._ahead = begin + self._window
            for piece in range(begin, self._ahead, PIECE_BYTES):
                _advise(self._fd, piece, PIECE_BYTES, WILL_NEED)
                offer_core()

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


def _advise(fd: int, offset: int, size: int, advice: int) -> None:
    """A hint, which not every file system takes; macOS has none."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(fd, offset, size, advice)


def _open_to_read(path: str, direct: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | direct)
    except OSError:
        if not direct:
            raise
    # A file system without direct I/O fails with EINVAL (open(2)). Any other error occurs again.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


class SystemWriteFile:
    """A `WriteFile`."""

    __slots__ = ("_fd", "pwrite", "pwritev")

    def __init__(self, path: str, creation: Creation, mode: WriteMode) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC | _CREATION[creation] | _MODE[mode]
        self._fd = fd = os.open(path, flags, 0o644)
        self.pwrite: Callable[[bytes | memoryview, int], int] = partial(os.pwrite, fd)
        self.pwritev: Callable[[Sequence[bytes], int], int] = partial(os.pwritev, fd)

    def fileno(self) -> int:
        return self._fd

    def truncate(self, size: int, /) -> None:
        os.ftruncate(self._fd, size)

    def reserve(self, start: int, size: int) -> bool:
        return extents.reserve(self._fd, start, size)

    def allocate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        if hasattr(os, "posix_fallocate"):  # missing on macOS, which allocates when writing
            os.posix_fallocate(self._fd, 0, size)

    def sync(self) -> None:
        sync_descriptor(self._fd)

    def close(self) -> None:
        os.close(self._fd)
