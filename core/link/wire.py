"""What a protocol looks like to the link: bytes in, events out, replies packed.

A wire is sans-I/O: it knows bytes and protocol state, never a topic, a clock or a socket. A session
knows the broker and never bytes. The link owns the socket and introduces the two:

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


class Wire(Protocol):
    """One connection's protocol, without its socket."""

    packs_unasked: bool
    """Whether there may be something to send after `feed`. Of all else the packer tells the
    connection (`Connection.touch`).
    """

    @property
    def frame_bytes_wanted(self) -> int:
        """Size of the whole incomplete frame at the head of the left-over; 0 if not yet known.

        The link uses it to receive a large frame into one buffer of the right size.
        """
        ...

    @property
    def bytes_held(self) -> int:
        """How much of an incomplete frame it keeps itself, because it had to change what came."""
        ...

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took.

        The link keeps the rest and feeds it again with more behind it. Raises `WireError`, after
        which the wire takes no more bytes; events parsed before it are still to be taken, and
        outgoing bytes still to be sent (a last word to the peer).
        """
        ...

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Asked once of a large frame that begins so: how much of it are words, before a body that
        is to be received by itself, and how many bytes to leave free in front of that.

        Of the frame the wire then keeps the words, and wants the rest. (0, 0): it is taken whole.
        """
        ...

    def feed_large(self, frame: LargeFrame) -> None:
        """Parse a large frame, or the rest of one whose words the wire has. Raises like `feed`."""
        ...

    def take_events(self) -> Sequence[Any]:
        """What has happened since the last call."""
        ...

    def take_outgoing(self) -> list[bytes]:
        """What to send next, in order; the caller owns the list."""
        ...


class NoWire:
    """That of a connection which is closed. It and its session know each other, and so both wait
    for the collector, which hardly ever looks at what is old. With 40 KB of OpenSSL's at each that
    had TLS, thousands that had gone held hundreds of megabytes.
    """

    packs_unasked = False
    frame_bytes_wanted = bytes_held = 0

    def feed(self, data: bytes) -> int:
        return len(data)

    def body_in(self, begin: bytes) -> tuple[int, int]:
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        """It is discarded."""

    def take_events(self) -> Sequence[Any]:
        return ()

    def take_outgoing(self) -> list[bytes]:
        return []


NO_WIRE: Final = NoWire()


class Session(Protocol):
    """What one connection means to the broker."""

    @property
    def silence_seconds_allowed(self) -> float:
        """For so long the peer may be silent just now, if that is more than any peer may."""
        ...

    def handle(self, event: Any, /) -> None:
        """Act on one event. Plain call: what must wait is started in the link's nursery."""
        ...

    def quiet(self) -> None:
        """The peer has been silent for one span: ask whether it lives, or end the connection."""
        ...

    def relieved(self) -> None:
        """The peer has taken most of what waited for it: senders that held back may go on."""
        ...

    def closed(self, reason: str, /) -> None:
        """The connection is gone, for any reason; called exactly once."""
        ...
