"""ZooKeeper's requests that kazoo 2.11 lacks: persistent watches, of ZooKeeper 3.6 and later. Pure.

A persistent recursive watch reports every change at and below a path, and stays until the
connection ends (ZOOKEEPER-1416; `AddWatchMode.java` and `ZooDefs.java` of 3.9 have the numbers).
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from msgspec import Struct

PERSISTENT_RECURSIVE: Final = 1
ANY_WATCHER: Final = 3
_INT: Final = struct.Struct(">i")


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


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT.pack(len(data)) + data
