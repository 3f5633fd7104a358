"""One accepted socket: its wire, its session, what was received in part and what waits to be sent.

The link drives it and is the only one that touches the socket. A session holds its connection to
ask three things of it: `touch` (I packed something), `pause`/`resume` (stop reading, for a reason
of mine) and `close`.

Invariants: at most one incomplete frame is kept (`left`); nothing is read while the outbox is above
its high-water mark, while any reason to pause stands, or after the end; `session.closed` is called
exactly once.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from core.link.gathering import Gathering, GatheringNow
from core.link.poller import READ, WRITE
from core.link.sockets import send_now

if TYPE_CHECKING:
    from core.link.loop import Link
    from core.link.wire import Session, Wire

PAUSE_STORAGE: Final = 1
"""Storage is congested: nobody who writes is read."""
PAUSE_PUBLISHES: Final = 2
"""Too many publishes of this connection wait for storage."""
PAUSE_RATE: Final = 4
"""A publish rate is used up."""
PAUSE_STOP: Final = 8
"""The server stops: never resumed."""

LARGE_BYTES: Final = 256 * 1024
"""A frame larger than this is received into a buffer of its own."""
GATHER_BYTES_MIN: Final = 16 * 1024
GATHER_GROWTH: Final = 4
"""A large frame's buffer is at most so many times what of it has come, or as large as the last one:
announcing costs nothing.
"""
EXPECTED_BYTES: Final = 4 * 1024
"""Received behind a large frame: enough to see that there is another."""
JOIN_BYTES_MAX: Final = 128 * 1024
"""Up to here one joined buffer is cheaper to send than a list of pieces."""
PIECES_MAX: Final = 512
"""Pieces per vectored send; the kernel takes 1024 at most."""


class Connection:
    """See the module's docstring."""

    __slots__ = (
        "ending",
        "farewell",
        "fd",
        "heard",
        "interest",
        "large",
        "large_bytes",
        "left",
        "link",
        "outbox",
        "outbox_bytes",
        "packed_bytes",
        "paused",
        "peer",
        "pinged",
        "progress",
        "refusal",
        "session",
        "socket",
        "touched",
        "wire",
        "writes",
    )

    def __init__(self, link: Link, sock: socket.socket, peer: str, refusal: str = "") -> None:
        self.link = link
        self.socket = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.refusal = refusal
        """Why the session is to send this peer away with its first words; empty if it is not."""
        self.wire: Wire
        self.session: Session
        self.left = b""
        self.large: Gathering | None = None
        """A frame bigger than the shared buffer gathers here, unparsed until it is whole."""
        self.large_bytes = 0
        """How much the last one had; 0 when something else has come since."""
        self.outbox: list[bytes] = []
        self.outbox_bytes = 0
        self.packed_bytes = 0
        """Packed since the last flush, as far as whoever packed it has said (`packed`)."""
        self.paused = 0
        """A bit for each reason not to read (`PAUSE_...`)."""
        self.interest = READ
        self.touched = False
        self.ending: str | None = None
        """Why this connection closes as soon as its outbox is sent, if it does."""
        self.farewell: Callable[[], list[bytes]] | None = None
        """Packs what goes out behind everything else, if the wire has a word for goodbye."""
        self.heard = self.progress = link.now
        self.pinged = False
        self.writes = False
        """Brings storage work: held while that has too much."""

    # -- in -----------------------------------------------------------------------------------

    def gather(self) -> tuple[int, Gathering | None]:
        """How many more bytes of a large frame have come, 0 if the peer closed, and all of it when
        it is whole. OSError as the system says it.
        """
        large = self.large
        assert large is not None, "no large frame is on its way"
        count = large.receive(self.fd)
        if large.filled < large.room:
            return count, None
        wanted = self.wire.frame_bytes_wanted
        if large.room < wanted:
            large.grow(min(large.room * GATHER_GROWTH, wanted))
            return count, None
        self.large = None
        self.large_bytes = large.room
        return count, large

    def keep(self, rest: bytes) -> None:
        """Keep an incomplete frame; a large one in a buffer that grows as it comes."""
        wanted = self.wire.frame_bytes_wanted
        if wanted <= LARGE_BYTES:
            self.left = rest
            return
        words, before = self.wire.body_in(rest)
        room = max(len(rest) * GATHER_GROWTH, GATHER_BYTES_MIN, self.large_bytes)
        self.large = GatheringNow(rest, min(room, wanted - words), words, before)
        self.left = b""

    # -- state --------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        return self.fd >= 0

    @property
    def host(self) -> str:
        return self.peer.rpartition(":")[0]

    @property
    def reached_at(self) -> tuple[str, int]:
        """Our own address, as the peer knows it: host and port."""
        host, port = self.socket.getsockname()[:2]
        return host, port

    @property
    def congested(self) -> bool:
        """Whoever sends of his own accord (dispatch) stops while this is true."""
        return self.outbox_bytes + self.packed_bytes > self.link.limits.outbox_high_bytes

    def packed(self, size: int) -> None:
        """So much was packed unasked: it counts at once, or many consumers of one connection would
        each pack their fill before the first flush. Replies need not be counted.
        """
        self.packed_bytes += size
        self.touch()

    def touch(self) -> None:
        """There is something to send (or may be): the link looks at the end of this sweep."""
        if not self.touched:
            self.touched = True
            self.link.touched(self)

    def begin(self) -> None:
        """A task is about to bring what it worked out, and then calls `settle`."""
        self.link.begin()

    def settle(self) -> None:
        """Send that: sooner, and for less, than a lone `touch` has it sent."""
        self.link.settle()

    def will_write(self) -> None:
        """From now on this connection brings storage work."""
        if not self.writes:
            self.writes = True
            if self.link.storage_congested:
                self.pause(PAUSE_STORAGE)

    def pause(self, reason: int) -> None:
        """Stop reading until `resume` with the same reason."""
        self.paused |= reason
        self.update_interest()

    def resume(self, reason: int) -> None:
        self.paused &= ~reason
        self.update_interest()

    def end(self, reason: str) -> None:
        """Close as soon as what is packed has been sent and heard; nothing more is handled."""
        if self.ending is None:
            self.ending = reason
            self.touch()
            self.update_interest()

    def update_interest(self) -> None:
        wanted = WRITE if self.outbox else 0
        if not self.paused and self.ending is None and not self.congested:
            wanted |= READ
        if wanted != self.interest and self.fd >= 0:
            self.interest = wanted
            self.link.poller.change(self.fd, wanted)

    def flush(self) -> None:
        """Send what the wire packed, as far as the socket takes it."""
        self.touched = False
        if self.fd < 0:
            return
        packed = self.wire.take_outgoing()
        if len(packed) == 1 and not (self.packed_bytes or self.outbox or self.ending):
            packed = self._send_at_once(packed[0])
            if not packed:
                return
        was_congested = self.congested
        self.packed_bytes = 0
        if packed:
            if self.outbox:
                self.outbox += packed
                self.outbox_bytes += sum(map(len, packed))
                self._settle_pressure(was_congested)
                return  # the socket was full before; its turn comes with the next WRITE
            self.outbox = packed
            self.outbox_bytes = sum(map(len, packed))
        if self.outbox:
            self.drain(was_congested)
        elif self.ending is not None:
            self._leave(self.ending)
        elif was_congested:
            self._settle_pressure(was_congested)

    def _send_at_once(self, data: bytes) -> list[bytes]:
        """The common case: one piece, nothing before it, and the socket takes it all.

        Returns what it did not take.
        """
        try:
            sent = send_now(self.fd, data)
        except BlockingIOError:
            return [data]
        except OSError as error:
            self.link.drop(self, f"sending failed: {error.strerror}")
            return []
        self.progress = self.link.now
        return [data[sent:]] if sent < len(data) else []

    def drain(self, was_congested: bool = False) -> None:
        """Send from the outbox until it is empty or the socket is full."""
        was_congested = was_congested or self.congested
        while self.outbox:
            try:
                sent = self._send_once()
            except BlockingIOError:
                break
            except OSError as error:
                self.link.drop(self, f"sending failed: {error.strerror}")
                return
            self.progress = self.link.now
            self.outbox_bytes -= sent
            if self.outbox_bytes == 0:
                self.outbox = []
                break
            self._forget_sent(sent)
        if not self.outbox and self.ending is not None:
            self._leave(self.ending)
            return
        self._settle_pressure(was_congested)

    def _leave(self, reason: str) -> None:
        """All is sent: goodbye, and the peer may hear it."""
        farewell, self.farewell = self.farewell, None
        self.outbox = farewell() if farewell is not None else []
        if not self.outbox:
            self.link.linger(self, reason)
            return
        self.outbox_bytes = sum(map(len, self.outbox))
        self.drain()  # comes back here when that is sent

    def _settle_pressure(self, was_congested: bool) -> None:
        """Whoever held back may go on, and so may reading, if the peer has taken enough."""
        if was_congested and not self.congested:
            self.session.relieved()
        self.update_interest()

    def _send_once(self) -> int:
        outbox = self.outbox
        if len(outbox) == 1:
            return send_now(self.fd, outbox[0])
        if self.outbox_bytes <= JOIN_BYTES_MAX:
            self.outbox = [b"".join(outbox)]
            return send_now(self.fd, self.outbox[0])
        return self.socket.sendmsg(outbox[:PIECES_MAX])

    def _forget_sent(self, sent: int) -> None:
        """Drop whole pieces from the front, cut the one that went out in part."""
        outbox = self.outbox
        done = 0
        while sent >= len(outbox[done]):
            sent -= len(outbox[done])
            done += 1
        if sent:
            outbox[done] = outbox[done][sent:]
        if done:
            del outbox[:done]
