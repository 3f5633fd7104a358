"""A frame larger than the shared buffer, which is received into a buffer of its own.

Some bytes may be left free before it, for a header that is stored with it. The twin in
`compiled.pyx` receives into the bytes object that is passed on: it neither zeroes nor copies the
buffer when it grows, or when the header is filled in.

Invariant: `filled` bytes of `room` are received; after `whole` or `view` nothing more is. The free
bytes are visible only after they are filled, once.
"""

from __future__ import annotations

import os

from magnetar.core.native import quickest


class LargeFrame:
    """See the module's docstring."""

    def __init__(self, begin: bytes, room: int, skipped: int = 0, before: int = 0) -> None:
        """`begin` is received already; its first `skipped` bytes are left out, and the rest fits.
        `before` bytes are left free before it.
        """
        begin = begin[skipped:]
        self.filled = len(begin)
        self.room = room
        self.before = before
        self._data = bytearray(room)
        self._data[: len(begin)] = begin

    def receive(self, fd: int) -> int:
        """Receive more; returns how many bytes, 0 if the peer has closed. Raises OSError."""
        count = os.readv(fd, [memoryview(self._data)[self.filled :]])
        self.filled += count
        return count

    def grow(self, room: int) -> None:
        """Make room for more."""
        self._data.extend(bytes(room - self.room))
        self.room = room

    def whole(self) -> bytes:
        """All received bytes."""
        data = bytes(self._data[: self.filled])
        self._data = bytearray()
        self.room = self.filled = 0
        return data

    def cut(self, size: int) -> bytes:
        """Remove and return the last received bytes."""
        if not 0 <= size <= self.filled:
            raise ValueError("so much has not come")
        self.filled -= size
        return bytes(self._data[self.filled : self.filled + size])

    def view(self) -> memoryview:
        """All received bytes, without a copy."""
        self.room = self.filled
        return memoryview(self._data)[: self.filled].toreadonly()

    def behind(self, front: bytes) -> bytes:
        """`front`, which fills the free bytes, followed by the bytes of `view`."""
        if len(front) != self.before:
            raise ValueError("it does not fill what was left free")
        return front + self.whole()


new_large_frame = quickest(LargeFrame, "magnetar.core.link.compiled")
