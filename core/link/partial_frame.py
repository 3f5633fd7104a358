"""The part of a connection's next frame that is received.

A small part is held as it came (`left`). A large frame is received into a buffer of its own, which
grows (`large_frame.py`). A wire under another one holds decrypted bytes itself. Large frames
reserve memory (`core/link/memory/inbound.py`); without it the connection is not read.

Invariant: at most one partial frame is held, in one of these places; `held` is what `incoming`
counts of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.link.large_frame import LargeFrame, new_large_frame
from magnetar.core.link.memory.pauses import PAUSE_MEMORY

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection

HELD_BYTES_MIN: Final = 4 * 1024
"""Smaller parts are not counted."""
GATHER_BYTES_MIN: Final = 16 * 1024
GATHER_GROWTH: Final = 4
"""The buffer of a large frame is at most so many times as large as what was received of it, or as
large as the last frame, so that announcing a large frame costs nothing.
"""
EXPECTED_BYTES: Final = 4 * 1024
"""Received after a large frame: enough to see that another one follows."""


class PartialFrame:
    """See the module's docstring."""

    __deletable__ = ("_connection",)
    __slots__ = ("_connection", "_incoming", "held", "large", "large_bytes", "left", "proven")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._incoming = connection.link.incoming
        self.left = b""
        self.large: LargeFrame | None = None
        """A frame larger than the shared buffer, not parsed before it is whole."""
        self.large_bytes = 0
        """The size of the last large frame; 0 if a small one followed."""
        self.held = 0
        self.proven = False
        """Whether data of this peer was stored."""

    def gather(self) -> tuple[int, LargeFrame | None]:
        """Receive more of a large frame; returns how many bytes, 0 if the peer has closed, and the
        frame when it is whole. Raises OSError.
        """
        large = self.large
        assert large is not None, "no large frame is on its way"
        count = large.receive(self._connection.fd)
        if large.filled < large.room:
            return count, None
        requested = self._connection.wire.frame_bytes_wanted
        if large.room < requested:
            self._grow(min(large.room * GATHER_GROWTH, requested))
            return count, None
        self.large = None
        self.large_bytes = large.room
        self._incoming.done(self)
        return count, large

    def keep(self, rest: bytes) -> None:
        """Hold a partial frame; a large one in a buffer that grows."""
        incoming, wire = self._incoming, self._connection.wire
        requested = wire.frame_bytes_wanted
        if requested <= incoming.large_bytes:
            self.left = rest
            self._hold(len(rest) + wire.bytes_held)
            return
        words, before = wire.body_in(rest)
        come = len(rest) - words
        room = max(len(rest) * GATHER_GROWTH, GATHER_BYTES_MIN, self.large_bytes)
        room = min(room, requested - words)
        incoming.hold(self, come)
        if not incoming.ask(self, room - come, requested - len(rest)):
            room = come
            self._connection.pause(PAUSE_MEMORY)
        self.large = new_large_frame(rest, room, words, before)
        self.left = b""

    def _hold(self, size: int) -> None:
        """Count bytes held outside a buffer that has reserved memory."""
        incoming = self._incoming
        if size > max(self.held, incoming.large_bytes):  # decrypted: it grows without asking
            step = size - self.held
            if not incoming.ask(self, step, step):
                self._connection.pause(PAUSE_MEMORY)
        elif size > HELD_BYTES_MIN:
            incoming.hold(self, size)
        elif self.held:
            incoming.done(self)

    def kept_nothing(self) -> None:
        """All received frames were whole, unless the wire holds a part of the next."""
        self.left = b""
        if self.held or self._connection.wire.bytes_held:
            self._hold(self._connection.wire.bytes_held)

    def _grow(self, room: int) -> None:
        """Reserve memory for more of the large frame, and grow its buffer."""
        large = self.large
        assert large is not None, "no large frame is on its way"
        rest = self._connection.wire.frame_bytes_wanted - large.room
        if self._incoming.ask(self, room - large.room, rest):
            large.grow(room)
        else:
            self._connection.pause(PAUSE_MEMORY)

    def go_on(self) -> None:
        """The memory that the frame waited for is reserved."""
        if self.large is not None:
            self.large.grow(self.held)
        self._connection.resume(PAUSE_MEMORY)

    def release(self) -> None:
        """Release the frame of a closed connection."""
        self._incoming.done(self)
        self.left = b""
        self.large = None
        del self._connection  # it refers to this: see `NoWire`
