"""Disk: directories and files, and what of them a power cut leaves.

Three things last: bytes that `sync` covered, or that were written with `DIRECT_SYNC`; names after a
`sync` of their directory; a directory that `Directory.directory` has made. Everything else may be
lost in part: of a write any sectors, of changes of names those after some point.

Errors are `OSError` with the system's own numbers, `FileNotFoundError` and `FileExistsError` among
them. Every call may block, so a caller on the loop makes only those that find the page cache.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct


class Creation(enum.Enum):
    """Which file is opened for writing."""

    NEW = enum.auto()
    """One that is not there: else `FileExistsError`."""
    REPLACE = enum.auto()
    """An existing file is emptied; a missing one is created."""
    EXISTING = enum.auto()
    """An existing file, unchanged; else `FileNotFoundError`."""


class WriteMode(enum.Enum):
    """Which way written bytes take."""

    CACHED = enum.auto()
    """Through the page cache."""
    DIRECT = enum.auto()
    """Past it: buffers, sizes and offsets are multiples of 512 bytes. Still to be synced."""
    DIRECT_SYNC = enum.auto()
    """Past it, and durable when the write returns."""


class DiskUsage(Struct, frozen=True):
    """How full a disk is at one moment."""

    used_part: float
    """What only root may use counts as used."""
    free_bytes: int


class ReadFile(Protocol):
    """A file open for reading. Any thread may read, several at once."""

    def pread(self, size: int, offset: int, /) -> bytes:
        """Fewer bytes only at the end of the file."""
        ...

    def preadv(self, buffers: Sequence[memoryview], offset: int, /) -> int:
        """Fill buffers, which a file opened `direct` wants aligned; how many bytes there were."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class WriteFile(Protocol):
    """A file open for writing, by one thread at a time."""

    def fileno(self) -> int:
        """What `SubmittedWrites` call this file."""
        ...

    def pwrite(self, data: bytes | memoryview, offset: int, /) -> int:
        """How many bytes were written: perhaps not all. After an error that is unknown."""
        ...

    def pwritev(self, pieces: Sequence[bytes], offset: int, /) -> int:
        """Likewise, of pieces that follow each other."""
        ...

    def truncate(self, size: int, /) -> None:
        """End the file there. Room that was reserved behind the end is given back."""
        ...

    def reserve(self, start: int, size: int) -> bool:
        """Set blocks aside behind the end, which stays where it is. A hint; False if it is lost."""
        ...

    def allocate(self, size: int) -> None:
        """Make the file that long, of zeros, with blocks for all of it: no write lacks room."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Directory(Protocol):
    """One directory. Names in it are plain, without separators."""

    @property
    def path(self) -> str:
        """For people."""
        ...

    @property
    def direct(self) -> bool:
        """Whether direct writes, durable when they return, work here. Tried at the first call."""
        ...

    def open(self, name: str, *, direct: bool = False) -> ReadFile:
        """`direct`: from the disk itself, past the page cache, if the system can."""
        ...

    def open_for_writing(
        self, name: str, creation: Creation, mode: WriteMode = WriteMode.CACHED
    ) -> WriteFile: ...

    def names(self) -> list[str]: ...

    def rename(self, old: str, new: str) -> None:
        """A file that has the new name goes."""
        ...

    def link(self, old: str, new: str) -> None:
        """Give a file a second name; `FileExistsError` if that is taken."""
        ...

    def remove(self, name: str) -> None:
        """A file, or a directory with all that is in it; open files stay readable."""
        ...

    def sync(self) -> None:
        """Make names durable: what was created, renamed or removed."""
        ...

    def directory(self, name: str) -> Directory:
        """The subdirectory of that name; created durably if it is missing."""
        ...


class SubmittedWrites(Protocol):
    """Writes of one buffer that the system does by itself, one at a time.

    Only for files opened with `DIRECT_SYNC`: a write is durable when it has ended. The buffer
    belongs to the system until then.
    """

    descriptor: int
    """Readable when a write may have ended."""
    busy: bool

    def begin(self, fd: int, offset: int, start: int, size: int) -> None:
        """Write `size` bytes of the buffer from `start` on. OSError if it cannot even begin.

        BlockingIOError, here or from `ended`: nothing is written, since the file system would have
        to wait for something; a thread should write it.
        """
        ...

    def ended(self) -> int | None:
        """How many bytes the write wrote, once it has ended; None before. OSError if it failed."""
        ...

    def wait(self) -> None:
        """Block for a while, or until a write has ended."""
        ...

    def close(self) -> None:
        """Wait for a write that is under way."""
        ...


class Disk(Protocol):
    """Where directories come from."""

    def directory(self, path: str) -> Directory:
        """Made, durably and with its parents, if it is not there."""
        ...

    def lock(self, directory: Directory, name: str) -> AbstractContextManager[None]:
        """Hold a lock file that one process may hold; `BlockingIOError` if another does."""
        ...

    def usage(self, directory: Directory) -> DiskUsage: ...

    def submitted_writes(self, buffer: memoryview) -> SubmittedWrites | None:
        """None where the system has no such thing, or forbids it."""
        ...
