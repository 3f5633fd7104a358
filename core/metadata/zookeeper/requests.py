"""ZooKeeper's requests that kazoo 2.11 lacks, of ZooKeeper 3.6 and later. Pure.

A persistent recursive watch reports every change at and below a path, and stays until the
connection ends (ZOOKEEPER-1416; `AddWatchMode.java` and `ZooDefs.java` of 3.9 have the numbers).

A read of many nodes is framed as a transaction is, and each of them succeeds or fails alone
(`multiRead` in `ZooDefs.java`, `MultiOperationRecord.java`, `MultiResponse.java`).
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from msgspec import Struct

PERSISTENT_RECURSIVE: Final = 1
ANY_WATCHER: Final = 3
GET_DATA: Final = 4
ERROR: Final = -1
NO_NODE: Final = -101
_INT: Final = struct.Struct(">i")
_MULTI_HEADER: Final = struct.Struct(">i?i")
"""Type, whether that was the last one, error."""
_STAT_BYTES: Final = 68


class AddWatch(Struct, frozen=True):
    """Report each change at or below a path from now on."""

    path: str
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        return _string(self.path) + _INT.pack(PERSISTENT_RECURSIVE)

    def deserialize(self, buffer: bytes, offset: int) -> bool:
        """What kazoo calls with the body of the answer, whose error it has looked at."""
        return True


class RemoveWatches(Struct, frozen=True):
    """Report them no longer."""

    path: str
    type: ClassVar[int] = 18

    def serialize(self) -> bytes:
        return _string(self.path) + _INT.pack(ANY_WATCHER)

    def deserialize(self, buffer: bytes, offset: int) -> bool:
        """As above."""
        return True


class ReadAll(Struct, frozen=True):
    """Read the data of many nodes."""

    paths: tuple[str, ...]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        one, watch = _MULTI_HEADER.pack(GET_DATA, False, -1), b"\0"
        asked = [one + _string(path) + watch for path in self.paths]
        return b"".join(asked) + _MULTI_HEADER.pack(-1, True, -1)

    def deserialize(self, buffer: bytes, offset: int) -> list[bytes | int | None]:
        """The data of each, None for a node without, or the number of an error."""
        found: list[bytes | int | None] = []
        while True:
            kind, is_over, error = _MULTI_HEADER.unpack_from(buffer, offset)
            offset += _MULTI_HEADER.size
            if is_over:
                return found
            (size,) = _INT.unpack_from(buffer, offset)
            offset += _INT.size
            if kind == ERROR:  # which is there a second time instead of a size
                found.append(error)
                continue
            end = offset + max(size, 0)
            found.append(None if size < 0 else bytes(buffer[offset:end]))
            offset = end + _STAT_BYTES


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT.pack(len(data)) + data
