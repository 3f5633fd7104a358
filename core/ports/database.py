"""Database: ordered keys and values in one directory, made durable by `flush`.

Errors: `Corrupted` for bytes that do not have their checksum, `OSError` for a disk that fails, with
`ENOSPC` for one that is full. An unreadable key is never reported as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from magnetar.core.ports.disk import Directory


class DatabaseBatch(Protocol):
    """Pairs that are written atomically."""

    def put(self, key: bytes, value: bytes, /) -> None: ...

    def __len__(self) -> int: ...


class DatabaseReader(Protocol):
    """The reading side, for any number of threads."""

    def get(self, key: bytes) -> bytes | None: ...

    def at_or_before(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The pair with the highest key up to `key`."""
        ...

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs in the order of their keys, from `start` on."""
        ...

    def read_through(self) -> Generator[int, None, None]:
        """Read every block, to find damage; yields the number of keys so far, now and then."""
        ...


class Database(DatabaseReader, Protocol):
    """The writing side, for one thread at a time."""

    def batch(self) -> DatabaseBatch: ...

    def write(self, batch: DatabaseBatch) -> None:
        """Write to memory; `flush` makes it durable."""
        ...

    def delete(self, key: bytes) -> None: ...

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Delete all keys from `start` up to but not including `stop`."""
        ...

    def flush(self) -> None:
        """Make all changes durable."""
        ...

    def compact(self, start: bytes, stop: bytes) -> None:
        """Rewrite the keys from `start` up to `stop` without what was deleted. May flush."""
        ...

    def sequence(self) -> int:
        """The number of changes ever made; after a crash, of flushed changes."""
        ...

    def close(self) -> None: ...


class Databases(Protocol):
    """Opens databases, which share one cache."""

    def open(
        self, directory: Directory, write_buffer_bytes: int, damaged: Callable[[str], None]
    ) -> Database:
        """Open a database in its own directory; `Corrupted` if its files are damaged.

        `damaged` is called, with a message, when damage is found later.
        """
        ...
