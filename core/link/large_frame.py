"""A frame that is larger than the shared buffer, on its way: it is received where it stays.

Some bytes may be left free in front of it, for a header that it will be stored behind.

The twin in `compiled.pyx` receives into the very bytes that are handed on, and neither fills its
room with zeros nor copies what has come: not when it grows, and not when something is put before
it.

Invariant: `filled` bytes have come, of `room` that there is; after `whole` or `view` nothing more
comes. What was left free is in nobody's sight before it is filled, once.
"""

from __future__ import annotations

import os

from magnetar.core.native import quickest


class LargeFrame:
    """See the module's docstring."""

    def __init__(self, begin: bytes, room: int, skipped: int = 0, before: int = 0) -> None:
        """`begin` has come already; it fits, without its first bytes that are `skipped`. `before`
        bytes are left free in front of it.
        """
        begin = begin[skipped:]
        self.filled = len(begin)
        self.room = room
        self.before = before
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

    def cut(self, size: int) -> bytes:
        """Take off the last bytes that have come."""
        if not 0 <= size <= self.filled:
            raise ValueError("so much has not come")
        self.filled -= size
        return bytes(self._data[self.filled : self.filled + size])

    def view(self) -> memoryview:
        """All that has come, where it is."""
        self.room = self.filled
        return memoryview(self._data)[: self.filled].toreadonly()

    def behind(self, front: bytes) -> bytes:
        """`front`, which fills what was left free, and behind it all that was seen by `view`."""
        if len(front) != self.before:
            raise ValueError("it does not fill what was left free")
        return front + self.whole()


new_large_frame = quickest(LargeFrame, "magnetar.core.link.compiled")
