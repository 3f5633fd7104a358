"""A frame that is larger than the shared buffer, on its way: it is received where it stays.

The twin in `compiled.pyx` receives into the very bytes that are handed on, and neither fills its
room with zeros nor copies what has come when it grows.

Invariant: `filled` bytes have come, of `room` that there is; after `whole` nothing more comes.
"""

from __future__ import annotations

import os

from core.native import quickest


class Gathering:
    """See the module's docstring."""

    def __init__(self, begin: bytes, room: int) -> None:
        """`begin` has come already, and fits."""
        self.filled = len(begin)
        self.room = room
        self._data = bytearray(room)
        self._data[: len(begin)] = begin

    def receive(self, fd: int) -> int:
        """How many bytes have come, 0 if the peer has closed. OSError as the system says it."""
        count = os.readv(fd, [memoryview(self._data)[self.filled :]])
        self.filled += count
        return count

    def grow(self, room: int) -> None:
        """There is more to come."""
        self._data.extend(bytes(room - self.room))
        self.room = room

    def whole(self) -> bytes:
        """All that has come."""
        data = bytes(self._data[: self.filled])
        self._data = bytearray()
        self.room = self.filled = 0
        return data


GatheringNow = quickest(Gathering, "core.link.compiled")
