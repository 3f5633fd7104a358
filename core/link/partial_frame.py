"""What has come of a connection's next frame, and is not whole.

A small one is kept as it came (`left`); a large one is received where it stays (`large_frame.py`),
in a buffer that grows as it comes; what a wire under another has decrypted stays with that. Large
ones ask for room (`inbound.py`): without it the connection is not read.

Invariant: at most one incomplete frame is kept, in one of these places; `held` is what `incoming`
counts of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.link.large_frame import LargeFrame, new_large_frame
from magnetar.core.link.memory.pauses import PAUSE_MEMORY

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection

HELD_BYTES_MIN: Final = 4 * 1024
"""Less of a frame than this is not counted."""
GATHER_BYTES_MIN: Final = 16 * 1024
GATHER_GROWTH: Final = 4
"""A large frame's buffer is at most so many times what of it has come, or as large as the last one:
announcing costs nothing.
"""
EXPECTED_BYTES: Final = 4 * 1024
"""Received behind a large frame: enough to see that there is another."""


class PartialFrame:
    """See the module's docstring."""

    __slots__ = ("_connection", "_incoming", "held", "large", "large_bytes", "left", "proven")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._incoming = connection.link.incoming
        self.left = b""
        self.large: LargeFrame | None = None
        """A frame bigger than the shared buffer gathers here, unparsed until it is whole."""
        self.large_bytes = 0
        """How much the last one had; 0 when something else has come since."""
        self.held = 0
        self.proven = False
        """Something that this peer brought was stored."""

    def gather(self) -> tuple[int, LargeFrame | None]:
        """How many more bytes of a large frame have come, 0 if the peer closed, and all of it when
        it is whole. OSError as the system says it.
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
        """Keep an incomplete frame; a large one in a buffer that grows as it comes."""
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
        """The bytes held outside a buffer that reserved room."""
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
        """Every frame that has come is whole, unless the wire has something of the next."""
        self.left = b""
        if self.held or self._connection.wire.bytes_held:
            self._hold(self._connection.wire.bytes_held)

    def _grow(self, room: int) -> None:
        """More of the large frame may come, as soon as there is room."""
        large = self.large
        assert large is not None, "no large frame is on its way"
        rest = self._connection.wire.frame_bytes_wanted - large.room
        if self._incoming.ask(self, room - large.room, rest):
            large.grow(room)
        else:
            self._connection.pause(PAUSE_MEMORY)

    def go_on(self) -> None:
        """The room that its frame asked for is there, and counted."""
        if self.large is not None:
            self.large.grow(self.held)
        self._connection.resume(PAUSE_MEMORY)

    def let_go(self) -> None:
        """The connection is closed."""
        self._incoming.done(self)
        self.left = b""
        self.large = None
