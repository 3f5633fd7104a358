"""A database in one file: the verified fake of the port `Database`, over any `Directory`.

u64 changes | pairs (u32 size of the key | u32 size of the value | key | value) | CRC32C of that
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator
from struct import Struct
from typing import Final, cast

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ports.database import DatabaseBatch
from magnetar.core.ports.disk import Creation, Directory

FILE: Final = "DATA"
_sizes = Struct(">II")


class MemoryBatch(list[tuple[bytes, bytes]]):
    """A `DatabaseBatch`."""

    def put(self, key: bytes, value: bytes, /) -> None:
        self.append((key, value))


class MemoryDatabases:
    """`Databases` that need no cache."""

    def __init__(self, cache_bytes: int = 0) -> None:
        self.opened: list[MemoryDatabase] = []

    def open(
        self, directory: Directory, write_buffer_bytes: int, damaged: Callable[[str], None]
    ) -> MemoryDatabase:
        self.opened.append(MemoryDatabase(directory))
        return self.opened[-1]


class MemoryDatabase:
    """A `Database`: flushed pairs are in the file, others are lost with the process."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._pairs: dict[bytes, bytes] = {}
        self._changes = 0
        if FILE in directory.names():
            self._load()

    def _load(self) -> None:
        file = self._directory.open(FILE)
        data = file.pread(file.size(), 0)
        file.close()
        body, check = data[:-4], data[-4:]
        if crc32c(body).to_bytes(4, "big") != check:
            raise Corrupted(f"{self._directory.path} does not have its checksum")
        self._changes = int.from_bytes(body[:8], "big")
        at = 8
        while at < len(body):
            key_size, value_size = _sizes.unpack_from(body, at)
            at += _sizes.size
            value_at = at + key_size
            self._pairs[body[at:value_at]] = body[value_at : value_at + value_size]
            at = value_at + value_size

    def get(self, key: bytes) -> bytes | None:
        return self._pairs.get(key)

    def at_or_before(self, key: bytes) -> tuple[bytes, bytes] | None:
        keys = sorted(self._pairs)
        at = bisect_right(keys, key)
        return (keys[at - 1], self._pairs[keys[at - 1]]) if at else None

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        keys = sorted(self._pairs)
        for key in keys[bisect_left(keys, start) :]:
            if key in self._pairs:
                yield key, self._pairs[key]

    def read_through(self) -> Generator[int, None, None]:
        yield len(self._pairs)

    def batch(self) -> MemoryBatch:
        return MemoryBatch()

    def write(self, batch: DatabaseBatch) -> None:
        pairs = cast(MemoryBatch, batch)
        self._pairs.update(pairs)
        self._changes += len(pairs)

    def delete(self, key: bytes) -> None:
        self._pairs.pop(key, None)
        self._changes += 1

    def delete_range(self, start: bytes, stop: bytes) -> None:
        for key in [key for key in self._pairs if start <= key < stop]:
            del self._pairs[key]
        self._changes += 1

    def compact(self, start: bytes, stop: bytes) -> None:
        """Nothing that was deleted is kept; a flush may come with it."""
        self.flush()

    def flush(self) -> None:
        parts = [self._changes.to_bytes(8, "big")]
        for key, value in self._pairs.items():
            parts += [_sizes.pack(len(key), len(value)), key, value]
        body = b"".join(parts)
        new = self._directory.open_for_writing(FILE + ".new", Creation.REPLACE)
        new.pwrite(body + crc32c(body).to_bytes(4, "big"), 0)
        new.sync()
        new.close()
        self._directory.rename(FILE + ".new", FILE)
        self._directory.sync()

    def sequence(self) -> int:
        return self._changes

    def close(self) -> None:
        return
