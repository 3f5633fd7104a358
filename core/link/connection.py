"""A connection: a socket, its wire and session, a partial frame, and bytes to be sent.

Only the link uses the socket. A session calls `touch` (it has packed something), `pause` and
`resume` (reading stops for a reason), and `end`.

Invariants: nothing is read while the outbox is above its high-water mark, while there is a reason
to pause, or after the end; `session.closed` is called exactly once.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.clock import Clock
from magnetar.core.link.layers.layer import Layer
from magnetar.core.link.layers.tls import TlsWire
from magnetar.core.link.memory.pauses import PAUSE_STORING
from magnetar.core.link.partial_frame import PartialFrame
from magnetar.core.link.readiness.poller import READ, WRITE
from magnetar.core.link.sockets import probe, send, unsent
from magnetar.core.link.wire import NO_WIRE, Piece, Session, Wire

if TYPE_CHECKING:
    from magnetar.core.link.loop import Link

log = logging.getLogger(__name__)

PROOF_BYTES: Final = 256 * 1024
"""Linux buffers 128 KiB for a program that does not read; a peer that took more does read."""
JOIN_BYTES_MAX: Final = 128 * 1024
"""Up to this size one joined buffer is cheaper to send than a list of pieces."""
PIECES_MAX: Final = 512
"""Pieces per vectored send; the kernel takes 1024 at most."""
SENDING_SECONDS: Final = 0.002
"""How long is sent in one turn to connections that were touched."""
SENT_UNSEEN: Final = 8
"""Connections that are flushed without a look at the clock."""


class Connection:
    """See the module's docstring."""

    __slots__ = (
        "_farewell",
        "answers",
        "ending",
        "fd",
        "given_bytes",
        "heard",
        "interest",
        "introduced",
        "layered",
        "link",
        "outbox",
        "outbox_bytes",
        "packed_bytes",
        "partial",
        "passed_by",
        "paused",
        "peer",
        "pinged",
        "progress",
        "received_bytes",
        "refusal",
        "session",
        "since",
        "socket",
        "storing_bytes",
        "taken_bytes",
        "tls",
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
        """The reason for which the session has to refuse this peer; empty for none."""
        self.wire: Wire
        self.session: Session
        self._farewell: Callable[[], list[bytes]] | None = None
        """Packs the last bytes of the connection, such as TLS's close_notify."""
        self.layered = False
        """Whether a layer, such as TLS, is below the protocol's own wire."""
        self.tls: ssl.SSLObject | None = None
        """Its TLS, which knows the peer's certificate once something was received through it."""
        self.partial = PartialFrame(self)
        self.received_bytes = 0
        self.storing_bytes = 0
        self.outbox: list[Piece] = []
        self.outbox_bytes = 0
        self.packed_bytes = 0
        """Bytes packed since the last flush, as reported by `packed`."""
        self.taken_bytes = 0
        """The number of waiting bytes that the peer has taken."""
        self.given_bytes = 0
        """Bytes of deliveries and of counted replies packed for it."""
        self.answers = False
        """Whether it has acknowledged what it was sent, as its session knows: then it reads."""
        self.passed_by = False
        """Whether dispatch has skipped it and expects a notification once the peer reads again."""
        self.paused = 0
        """Reasons not to read (`pauses.py`)."""
        self.interest = READ
        self.touched = False
        self.ending: str | None = None
        """The reason why the connection closes when its outbox is sent; None if it does not."""
        self.since = self.heard = self.progress = link.now
        self.introduced = False
        """Whether it has sent a valid request, and authenticated where its session wants that. One
        that has not is closed soon (`keep_alive.py`).
        """
        self.pinged = False
        self.writes = False
        """Whether it writes to storage, so that it is paused when storage is congested."""

    def serve(self, wire: Wire, session: Session) -> None:
        """Set the wire and the session."""
        self.wire, self.session = wire, session
        if isinstance(wire, Layer):
            self._farewell, self.layered = wire.farewell, True
        if isinstance(wire, TlsWire):
            self.tls = wire.tls

    # -- state --------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        return self.fd >= 0

    @property
    def host(self) -> str:
        return self.peer.rpartition(":")[0]

    @property
    def reached_at(self) -> tuple[str, int]:
        """The local address of the socket: host and port."""
        host, port = self.socket.getsockname()[:2]
        return host, port

    @property
    def congested(self) -> bool:
        """Whether deliveries stop, because too much waits to be sent. When that ends,
        `Session.relieved` is called.
        """
        outgoing = self.link.outgoing
        waits = self.outbox_bytes + self.packed_bytes
        if waits <= outgoing.high:
            return False
        if waits:
            self.passed_by = True
            return True
        if self.fd >= 0 and not (self.reads and outgoing.share(reads=True)):
            outgoing.wait(self)  # other peers have to make room
            return True
        return self.fd < 0

    @property
    def _backed_up(self) -> bool:
        """Whether the peer receives too slowly to be read. The limit is lower when little of the
        memory for all peers is left.
        """
        return self.outbox_bytes + self.packed_bytes > self.link.outgoing.high_read

    @property
    def takes_too_little(self) -> bool:
        """Whether it gets no more replies until it receives those packed; see `relieved`."""
        if self._backed_up:
            self.passed_by = True
        return self._backed_up

    @property
    def waited_for(self) -> bool:
        """Whether it holds part of a frame, and the rest is the peer's to send."""
        return bool(self.partial.held) and not self.paused and not self._backed_up

    @property
    def reads(self) -> bool:
        """Whether the peer has received more than its system buffers, or acknowledged what it has
        received, and nothing waits.
        """
        proven = self.answers or self.given_bytes >= PROOF_BYTES
        return proven and not self.outbox and unsent(self.fd) == 0

    def relieved(self) -> None:
        """There is memory again for bytes to all peers."""
        self.session.relieved()

    def packed(self, size: int) -> None:
        """Count a packed delivery at once: many consumers of one connection would otherwise each
        pack up to the limit before the first flush. Replies need not be counted.
        """
        if self.fd < 0:
            return  # it will never be sent
        self.packed_bytes += size
        self.given_bytes += size
        self.link.outgoing.add(size)
        self.touch()

    def keep(self, size: int) -> None:
        """Count packed bytes that the wire did not give when it was asked, as all would take
        too long. It is asked again, once nothing waits to be sent.
        """
        self.packed_bytes += size
        self.link.outgoing.add(size)
        if self.outbox:
            self.passed_by = True
        else:
            self.touch()

    def share(self) -> int:
        """The largest reply it may have now; 0 for none, until `relieved` is called."""
        if self.fd < 0:
            return 0
        outgoing = self.link.outgoing
        share = outgoing.share(reads=False)
        if not share and self.reads:
            share = outgoing.share(reads=True)
        if not share:
            outgoing.wait(self)
        return share

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Reserve memory for a reply that is being built."""
        self.link.outgoing.add(size)
        try:
            yield
        finally:
            self.link.outgoing.remove(size)

    def storing(self, size: int) -> None:
        """Count bytes that are being stored; at the limit the connection is paused."""
        self.storing_bytes += size
        link = self.link
        link.incoming.storing += size
        if self.storing_bytes >= link.limits.storing_bytes_per_connection_max:
            self.pause(PAUSE_STORING)
        if link.incoming.storing_much:
            link.check_writers()

    def stored(self, size: int, *, proves: bool = True) -> None:
        """Count bytes that are stored, or have failed; at half the limit reading resumes. With
        `proves`, the peer is one that writes.
        """
        if size and proves:
            self.partial.proven = True
        self.storing_bytes -= size
        self.link.incoming.storing -= size
        if (
            self.paused & PAUSE_STORING
            and 2 * self.storing_bytes <= self.link.limits.storing_bytes_per_connection_max
        ):
            self.resume(PAUSE_STORING)

    def has_room_for(self, size: int) -> bool:
        """Reserve memory for a large request until it is answered; False if there is none."""
        return self.link.incoming.take(size)

    def has_room_to_wait(self, size: int) -> bool:
        """Reserve memory for a small request that waits; False if there is none."""
        return self.link.incoming.take(size, proven=self.partial.proven)

    def has_answered(self, size: int) -> None:
        """Release the memory of a request."""
        self.link.incoming.requested -= size

    def complain(self, kind: str, text: str) -> None:
        """Log an error of this peer, but not each one if it goes on (`complaints.py`)."""
        self.link.complaints.say(kind, self.host, f"{self.peer}: {text}")

    def touch(self) -> None:
        """Have the link send packed bytes at the end of this sweep."""
        if not self.touched:
            self.touched = True
            self.link.touched(self)

    def probe(self) -> None:
        """Have the system ask whether a silent peer is still there, where the protocol does not."""
        if self.fd >= 0:
            probe(self.socket)

    def begin(self) -> None:
        """A task is about to pack replies, and then calls `settle`."""
        self.link.begin()

    def settle(self) -> None:
        """Send them now, which is faster and cheaper than after `touch`."""
        self.link.settle()

    def will_write(self) -> None:
        """The connection writes to storage from now on."""
        self.writes = True

    def pause(self, reason: int) -> None:
        """Stop reading until `resume` with the same reason."""
        self.paused |= reason
        self.update_interest()

    def resume(self, reason: int) -> None:
        self.paused &= ~reason
        self.update_interest()

    def end(self, reason: str, last_words: bytes = b"") -> None:
        """Close when all packed bytes are sent and received; no more events are handled.
        `last_words` are sent after these, without the wire.
        """
        if self.ending is None:
            self.ending = reason
            if last_words:
                self._farewell = lambda: [last_words]
            self.touch()
            self.update_interest()

    def update_interest(self) -> None:
        requested = WRITE if self.outbox else 0
        if not self.paused and self.ending is None and not self._backed_up:
            requested |= READ
        if requested != self.interest and self.fd >= 0:
            self.interest = requested
            self.link.poller.change(self.fd, requested)

    def flush(self) -> None:
        """Send packed bytes, as far as the socket takes them."""
        self.touched = False
        if self.fd < 0:
            return
        was_congested = False
        if self.packed_bytes:  # before the wire is asked, which may `keep` some
            was_congested = self._backed_up
            self.link.outgoing.remove(self.packed_bytes)
            self.packed_bytes = 0
        try:
            packed = self.wire.take_outgoing()
        except Exception:
            log.exception("%s: closed, this server failed", self.peer)
            self.link.drop(self, "this server failed")
            return
        if packed and not (self.outbox or self.ending):
            packed = self._send_at_once(packed)
            if self.fd < 0 or not (packed or was_congested or self.passed_by):
                return
        was_congested = was_congested or self._backed_up
        if packed:
            self._wait_with(packed, was_congested)
        elif self.outbox:
            self.drain(was_congested)
        elif self.ending is not None:
            self._leave(self.ending)
        elif was_congested or self.passed_by:
            self._settle_pressure(was_congested)

    def _wait_with(self, packed: Sequence[Piece], was_congested: bool) -> None:
        """Put bytes into the outbox, and send as far as the socket takes them."""
        size = sum(map(len, packed))
        self.link.outgoing.add(size)
        self.outbox_bytes += size
        if self.outbox:  # the socket was full before; its turn comes with the next WRITE
            self.outbox += packed
            self._settle_pressure(was_congested)
        else:
            self.outbox = list(packed)
            self.drain(was_congested)

    def _send_at_once(self, packed: Sequence[Piece]) -> Sequence[Piece]:
        """Send when nothing waits, the common case; returns what the socket refused, or all if that
        is too much for one buffer.
        """
        first = packed[0]
        if len(packed) == 1 and isinstance(first, bytes):
            data = first
        elif sum(map(len, packed)) <= JOIN_BYTES_MAX:
            data = b"".join(packed)
        else:
            return packed
        try:
            sent = send(self.fd, data)
        except BlockingIOError:
            return [data]
        except OSError as error:
            self.link.drop(self, f"sending failed: {error.strerror}")
            return []
        self.progress = self.link.now
        return [rest_of(data, sent)] if sent < len(data) else []

    def drain(self, was_congested: bool = False) -> None:
        """Send from the outbox until it is empty or the socket is full."""
        was_congested = was_congested or self._backed_up
        while self.outbox:
            try:
                sent = self._send_once()
            except BlockingIOError:
                break
            except OSError as error:
                self.link.drop(self, f"sending failed: {error.strerror}")
                return
            self.progress = self.link.now
            self.taken_bytes += sent
            self.outbox_bytes -= sent
            self.link.outgoing.remove(sent)
            if self.outbox_bytes == 0:
                self.outbox = []
                break
            self._forget_sent(sent)
        if not self.outbox and self.ending is not None:
            self._leave(self.ending)
            return
        self._settle_pressure(was_congested)

    def _leave(self, reason: str) -> None:
        """Everything is sent: send the farewell, and linger."""
        farewell, self._farewell = self._farewell, None
        self.outbox = list(farewell()) if farewell is not None else []
        if not self.outbox:
            self.link.linger(self, reason)
            return
        self.outbox_bytes = sum(map(len, self.outbox))
        self.link.outgoing.add(self.outbox_bytes)
        self.drain()  # `drain` calls this again when all is sent

    def release(self) -> None:
        """Release everything that belongs to a closed connection."""
        link = self.link
        link.outgoing.remove(self.outbox_bytes + self.packed_bytes)
        link.outgoing.forget(self)
        self.partial.release()
        self.fd = -1
        self.outbox = []
        self.outbox_bytes = self.packed_bytes = 0
        self.wire = NO_WIRE
        self._farewell = None

    def _settle_pressure(self, was_congested: bool) -> None:
        """Resume deliveries and reading, if the peer has received enough."""
        if (was_congested and not self._backed_up) or (self.passed_by and not self.outbox):
            self.passed_by = False
            if self.packed_bytes:
                self.touch()
            self.session.relieved()
        self.update_interest()

    def _send_once(self) -> int:
        outbox = self.outbox
        first = outbox[0]
        if len(outbox) == 1 and isinstance(first, bytes):
            return send(self.fd, first)
        if self.outbox_bytes <= JOIN_BYTES_MAX:
            data = b"".join(outbox)
            self.outbox = [data]
            return send(self.fd, data)
        return self.socket.sendmsg(outbox[:PIECES_MAX])

    def _forget_sent(self, sent: int) -> None:
        """Remove sent pieces from the outbox, and the sent part of the next one."""
        outbox = self.outbox
        done = 0
        while sent >= len(outbox[done]):
            sent -= len(outbox[done])
            done += 1
        if sent:
            outbox[done] = rest_of(outbox[done], sent)
        if done:
            del outbox[:done]


def rest_of(piece: Piece, sent: int) -> Piece:
    """What is left of a piece that was sent in part: of a large one a view, unless that is less
    than half of what the view would keep in memory, where it counts for nothing.
    """
    kept = len(piece) if isinstance(piece, bytes) else memoryview(piece.obj).nbytes
    left = len(piece) - sent
    if left >= JOIN_BYTES_MAX and 2 * left >= kept:
        return memoryview(piece)[sent:]
    return bytes(piece[sent:])


class TouchedConnections:
    """Connections that may have something to send, in the order in which they were touched.

    A sweep makes replies for hundreds of peers in 2 ms, and each send is a system call: sending
    them all took four times as long. So sending ends after a while, and goes on in the next turn,
    with those that were left.
    """

    def __init__(self) -> None:
        self._touched: list[Connection] = []

    def __bool__(self) -> bool:
        return bool(self._touched)

    def add(self, connection: Connection) -> None:
        self._touched.append(connection)

    def flush(self, clock: Clock) -> None:
        """Send what is packed, and what that causes, until it has taken long."""
        started, unseen = -1.0, SENT_UNSEEN
        while self._touched:
            batch, self._touched = self._touched, []
            for flushed, connection in enumerate(batch):
                if not unseen:
                    now = clock.monotonic()
                    if started < 0:
                        started = now
                    elif now - started > SENDING_SECONDS:
                        self._touched = batch[flushed:] + self._touched
                        return
                    unseen = SENT_UNSEEN
                unseen -= 1
                connection.flush()
