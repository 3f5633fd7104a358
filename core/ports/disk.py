"""Disk: directories and files, and what survives a power cut.

These survive: bytes that `sync` covered, or that were written with `DIRECT_SYNC`; names after a
`sync` of their directory; a directory that `Directory.directory` has made. Everything else may be
lost in part: any sectors of a write, and all changes of names after some point.

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
    """Whether a file that is opened for writing must exist."""

    NEW = enum.auto()
    """A new file; `FileExistsError` if it exists."""
    REPLACE = enum.auto()
    """An existing file is emptied; a missing one is created."""
    EXISTING = enum.auto()
    """An existing file, unchanged; else `FileNotFoundError`."""


class WriteMode(enum.Enum):
    """Whether writes use the page cache."""

    CACHED = enum.auto()
    """Through the page cache."""
    DIRECT = enum.auto()
    """Past the page cache, aligned to 512 bytes in memory, size and offset; to be synced."""
    DIRECT_SYNC = enum.auto()
    """As DIRECT, and durable when the write returns."""


class DiskUsage(Struct, frozen=True):
    """The usage of a disk."""

    used_part: float
    """The used part; space reserved for root counts as used."""
    free_bytes: int
    total_bytes: int = 0
    filesystem: int = 0
    """Its number, the same for directories that share their space."""


class ReadFile(Protocol):
    """A file open for reading. Any thread may read, several at once."""

    def pread(self, size: int, offset: int, /) -> bytes:
        """Read; fewer bytes only at the end of the file."""
        ...

    def preadv(self, buffers: Sequence[memoryview], offset: int, /) -> int:
        """Fill buffers, aligned for a `direct` file; returns the number of bytes read."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class WriteFile(Protocol):
    """A file open for writing, by one thread at a time."""

    def fileno(self) -> int:
        """The descriptor, for `SubmittedWrites`."""
        ...

    def pwrite(self, data: bytes | memoryview, offset: int, /) -> int:
        """Write; returns how many bytes were written, perhaps not all. Unknown after an error."""
        ...

    def pwritev(self, pieces: Sequence[bytes], offset: int, /) -> int:
        """As `pwrite`, for consecutive pieces."""
        ...

    def truncate(self, size: int, /) -> None:
        """Cut the file, and free blocks that were reserved behind its end."""
        ...

    def reserve(self, start: int, size: int) -> bool:
        """Reserve blocks behind the end, as a hint; False if that is not possible."""
        ...

    def allocate(self, size: int) -> None:
        """Extend the file with zeros, and allocate all its blocks, so that no write lacks space."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Directory(Protocol):
    """One directory. Names in it are plain, without separators."""

    @property
    def path(self) -> str:
        """The path, for messages."""
        ...

    @property
    def direct(self) -> bool:
        """Whether `DIRECT_SYNC` works here; tried at the first call."""
        ...

    def open(self, name: str, *, direct: bool = False) -> ReadFile:
        """Open for reading; with `direct`, past the page cache if the system can."""
        ...

    def open_for_writing(
        self, name: str, creation: Creation, mode: WriteMode = WriteMode.CACHED
    ) -> WriteFile: ...

    def names(self) -> list[str]: ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace one that has the new name."""
        ...

    def link(self, old: str, new: str) -> None:
        """Give a file a second name; `FileExistsError` if that is taken."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with its contents; open files stay readable."""
        ...

    def sync(self) -> None:
        """Make all changes of names durable."""
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
