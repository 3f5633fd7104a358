"""A protocol as the link sees it: bytes in, events out, replies packed.

A wire is sans-I/O, as h11's `Connection`: it has bytes and protocol state, and no topic, clock or
socket. A session has the broker and no bytes. The link owns the socket and connects the two:

    consumed = wire.feed(data)            # parse every whole frame that is there
    for event in wire.take_events():      # values, in order
        session.handle(event)
    send(wire.take_outgoing())            # once per sweep

Invariant: a wire never awaits, and never keeps more than one incomplete frame's worth of bytes
(`feed` leaves those with the link, or they count as `bytes_held`).
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from magnetar.core.link.large_frame import LargeFrame

Piece = bytes | memoryview
"""Bytes to be sent; of an entry that is large, a view."""


class Wire(Protocol):
    """One connection's protocol, without its socket."""

    packs_unasked: bool
    """Whether `feed` may pack something by itself. For everything else, the caller that packs calls
    `Connection.touch`.
    """

    @property
    def frame_bytes_wanted(self) -> int:
        """Size of the incomplete frame at the head of the rest; 0 if it is not known yet.

        The link uses it to receive a large frame into one buffer of the right size.
        """
        ...

    @property
    def bytes_held(self) -> int:
        """Bytes of an incomplete frame that the wire itself holds, because it transforms them."""
        ...

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took.

        The link holds the rest and feeds it again with more bytes. Raises `WireError`, after which
        the wire takes no more bytes; earlier events are still to be taken, and outgoing bytes still
        to be sent (a last reply to the peer).
        """
        ...

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Called once for a large frame: the size of its head, before a body that is to be received
        into its own buffer, and how many bytes to leave free before the body.

        The wire then holds the head, and `feed_large` gets the body; for (0, 0), the whole frame.
        """
        ...

    def feed_large(self, frame: LargeFrame) -> None:
        """Parse a large frame, or the body of one whose head the wire has. Raises as `feed`."""
        ...

    def take_events(self) -> Sequence[Any]:
        """The events since the last call."""
        ...

    def take_outgoing(self) -> Sequence[Piece]:
        """The packed bytes, in order."""
        ...


class NoWire:
    """The wire of a closed connection, in place of its own, like `NoSession`. A connection and its
    session refer to each other, so they would live until the garbage collector looks at old
    objects, which is rare. With 40 KB of OpenSSL's memory each, thousands of closed connections
    held hundreds of megabytes.
    """

    packs_unasked = False
    frame_bytes_wanted = bytes_held = 0

    def feed(self, data: bytes) -> int:
        return len(data)

    def body_in(self, begin: bytes) -> tuple[int, int]:
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        """Discard it."""

    def take_events(self) -> Sequence[Any]:
        return ()

    def take_outgoing(self) -> Sequence[Piece]:
        return ()


NO_WIRE: Final = NoWire()


class Session(Protocol):
    """Carries out the events of one connection on the broker."""

    @property
    def silence_seconds_allowed(self) -> float:
        """How long this peer may be silent, if that is longer than the link's limit."""
        ...

    def handle(self, event: Any, /) -> None:
        """Carry out one event. Plain call: work that waits is started in the link's nursery."""
        ...

    def quiet(self) -> None:
        """The peer was silent for one span: ping it, or end the connection."""
        ...

    def relieved(self) -> None:
        """The peer has received most of what waited for it, so deliveries may continue."""
        ...

    def closed(self, reason: str, /) -> None:
        """The connection is closed, for any reason; called exactly once."""
        ...


class NoSession:
    """The session of a closed connection, in place of its own: see `NoWire`."""

    silence_seconds_allowed = 0.0

    def handle(self, event: Any, /) -> None:
        """Nothing is carried out any more."""

    def quiet(self) -> None:
        """It has gone."""

    def relieved(self) -> None:
        """Nothing is delivered any more."""

    def closed(self, reason: str, /) -> None:
        """Its own session was told."""


NO_SESSION: Final = NoSession()
