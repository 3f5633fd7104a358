"""Database: ordered keys and values in one directory, durable by `flush` alone.

Errors: `Corrupted` for bytes that do not have their checksum, `OSError` for a disk that fails, with
`ENOSPC` for one that is full. What could not be read is never taken for what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from magnetar.core.ports.disk import Directory


class DatabaseBatch(Protocol):
    """Pairs that are written together."""

    def put(self, key: bytes, value: bytes, /) -> None: ...

    def __len__(self) -> int: ...


class DatabaseReader(Protocol):
    """What is there. Any thread, several at once."""

    def get(self, key: bytes) -> bytes | None: ...

    def at_or_before(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The highest pair that is not above `key`."""
        ...

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs in the order of their keys, from `start` on."""
        ...

    def read_through(self) -> Generator[int, None, None]:
        """Look at every block, so that rot shows; how many keys so far, now and then."""
        ...


class Database(DatabaseReader, Protocol):
    """What changes it. One thread at a time."""

    def batch(self) -> DatabaseBatch: ...

    def write(self, batch: DatabaseBatch) -> None:
        """Into memory; durable after `flush`."""
        ...

    def delete(self, key: bytes) -> None: ...

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """All keys from `start` on that are below `stop`."""
        ...

    def flush(self) -> None:
        """What was changed is durable when this returns."""
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
        """In a directory of its own; `Corrupted` if what is there cannot be one.

        `damaged` is called, with a sentence, when rot shows later.
        """
        ...
