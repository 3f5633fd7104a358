"""One accepted socket: its wire, its session, what was received in part and what waits to be sent.

The link drives it and is the only one that touches the socket. A session holds its connection to
ask three things of it: `touch` (I packed something), `pause`/`resume` (stop reading, for a reason
of mine) and `close`.

Invariants: nothing is read while the outbox is above
its high-water mark, while any reason to pause stands, or after the end; `session.closed` is called
exactly once.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from magnetar.core.link.memory.pauses import PAUSE_STORAGE, PAUSE_STORING
from magnetar.core.link.partial_frame import PartialFrame
from magnetar.core.link.poller import READ, WRITE
from magnetar.core.link.sockets import send, unsent
from magnetar.core.link.wire import NO_WIRE, Session, Wire

if TYPE_CHECKING:
    from magnetar.core.link.loop import Link

PROOF_BYTES: Final = 256 * 1024
"""Linux takes 128 KiB for a program that does not read, until it sees it read."""
JOIN_BYTES_MAX: Final = 128 * 1024
"""Up to here one joined buffer is cheaper to send than a list of pieces."""
PIECES_MAX: Final = 512
"""Pieces per vectored send; the kernel takes 1024 at most."""


class Connection:
    """See the module's docstring."""

    __slots__ = (
        "_farewell",
        "ending",
        "fd",
        "given_bytes",
        "heard",
        "interest",
        "introduced",
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
        "sealed",
        "session",
        "since",
        "socket",
        "storing_bytes",
        "taken_bytes",
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
        self._farewell: Callable[[], list[bytes]] | None = None
        """Packs what goes out behind everything else, if there is a word for goodbye."""
        self.sealed = False
        """Under TLS."""
        self.partial = PartialFrame(self)
        self.received_bytes = 0
        self.storing_bytes = 0
        self.outbox: list[bytes] = []
        self.outbox_bytes = 0
        self.packed_bytes = 0
        """Bytes packed since the last flush, as reported by `packed`."""
        self.taken_bytes = 0
        """Of what had to wait for it."""
        self.given_bytes = 0
        """Packed for it unasked, and as answers that count."""
        self.passed_by = False
        """Dispatch is called when the peer has taken what waits for it."""
        self.paused = 0
        """Reasons not to read (`pauses.py`)."""
        self.interest = READ
        self.touched = False
        self.ending: str | None = None
        """Why this connection closes as soon as its outbox is sent, if it does."""
        self.since = self.heard = self.progress = link.now
        self.introduced = False
        """It has sent something valid."""
        self.pinged = False
        self.writes = False
        """Brings storage work: held while that has too much."""

    def serve(
        self, wire: Wire, session: Session, farewell: Callable[[], list[bytes]] | None = None
    ) -> None:
        """These two are the connection's halves. A wire under TLS has a `farewell`."""
        self.wire, self.session = wire, session
        self._farewell, self.sealed = farewell, farewell is not None

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
        """Dispatch, which sends unasked, stops while this is true, and is called when it
        is not any more (`Session.relieved`).
        """
        outgoing = self.link.outgoing
        waits = self.outbox_bytes + self.packed_bytes
        if waits <= outgoing.high:
            return False
        if waits:
            self.passed_by = True
            return True
        if self.fd >= 0 and not (self.reads and outgoing.share(reads=True)):
            outgoing.wait(self)  # it is not this peer that has to make room
            return True
        return self.fd < 0

    @property
    def _backed_up(self) -> bool:
        """The peer takes less than it is sent: it is not read either. The less is left of what may
        be sent to all, the sooner.
        """
        return self.outbox_bytes + self.packed_bytes > self.link.outgoing.high_read

    @property
    def takes_too_little(self) -> bool:
        """It gets no more answers until it takes those it has; then `relieved` is called."""
        if self._backed_up:
            self.passed_by = True
        return self._backed_up

    @property
    def waited_for(self) -> bool:
        """It holds a part of a frame, and it is not we who keep the rest from coming."""
        return bool(self.partial.held) and not self.paused and not self._backed_up

    @property
    def reads(self) -> bool:
        """It took more than its own system would take for it, and has nothing waiting."""
        return self.given_bytes >= PROOF_BYTES and not self.outbox and unsent(self.fd) == 0

    def relieved(self) -> None:
        """There is room again for what is to be sent, of all peers together."""
        self.session.relieved()

    def packed(self, size: int) -> None:
        """So much was packed unasked: it counts at once, or many consumers of one connection would
        each pack their fill before the first flush. Replies need not be counted.
        """
        if self.fd < 0:
            return  # it will never be sent
        self.packed_bytes += size
        self.given_bytes += size
        self.link.outgoing.add(size)
        self.touch()

    def share(self) -> int:
        """How large an answer it may have; 0 for none yet: `relieved` is called then."""
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
        """So much may be gathered for it meanwhile."""
        self.link.outgoing.add(size)
        try:
            yield
        finally:
            self.link.outgoing.remove(size)

    def storing(self, size: int) -> None:
        """So much that it brought is on its way to storage; at the limit, it is read no more."""
        self.storing_bytes += size
        link = self.link
        link.incoming.storing += size
        if self.storing_bytes >= link.limits.storing_bytes_per_connection_max:
            self.pause(PAUSE_STORING)
        if link.incoming.storing_much:
            link.check_writers()

    def stored(self, size: int, *, proves: bool = True) -> None:
        """So much is stored, or has failed; at half the limit, it is read again. Unless it only
        waited for that, the peer is one that writes.
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
        """Whether a large request may have so much memory until it is answered; then it counts."""
        return self.link.incoming.take(size)

    def has_room_to_wait(self, size: int) -> bool:
        """The same for a small waiting request, of which there may be many."""
        return self.link.incoming.take(size, proven=self.partial.proven)

    def has_answered(self, size: int) -> None:
        """It needs that no more."""
        self.link.incoming.requested -= size

    def complain(self, kind: str, text: str) -> None:
        """Have it logged that this peer did something wrong; not each time, if it goes on so."""
        self.link.complaints.say(kind, self.host, f"{self.peer}: {text}")

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
            if self.link.holds_writers:
                self.pause(PAUSE_STORAGE)

    def pause(self, reason: int) -> None:
        """Stop reading until `resume` with the same reason."""
        self.paused |= reason
        self.update_interest()

    def resume(self, reason: int) -> None:
        self.paused &= ~reason
        self.update_interest()

    def end(self, reason: str, last_words: bytes = b"") -> None:
        """Close as soon as what is packed has been sent and heard; nothing more is handled.
        `last_words` are sent after it, past the wire.
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
        """Send what the wire packed, as far as the socket takes it."""
        self.touched = False
        if self.fd < 0:
            return
        packed = self.wire.take_outgoing()
        if len(packed) == 1 and not (self.packed_bytes or self.outbox or self.ending):
            packed = self._send_at_once(packed[0])
            if not packed:
                return
        was_congested = self._backed_up
        if self.packed_bytes:
            self.link.outgoing.remove(self.packed_bytes)
            self.packed_bytes = 0
        if packed:
            size = sum(map(len, packed))
            self.link.outgoing.add(size)
            self.outbox_bytes += size
            if self.outbox:
                self.outbox += packed
                self._settle_pressure(was_congested)
                return  # the socket was full before; its turn comes with the next WRITE
            self.outbox = packed
        if self.outbox:
            self.drain(was_congested)
        elif self.ending is not None:
            self._leave(self.ending)
        elif was_congested or self.passed_by:
            self._settle_pressure(was_congested)

    def _send_at_once(self, data: bytes) -> list[bytes]:
        """The common case: one piece, nothing before it, and the socket takes it all.

        Returns what it did not take.
        """
        try:
            sent = send(self.fd, data)
        except BlockingIOError:
            return [data]
        except OSError as error:
            self.link.drop(self, f"sending failed: {error.strerror}")
            return []
        self.progress = self.link.now
        return [data[sent:]] if sent < len(data) else []

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
        """All is sent: goodbye, and the peer may hear it."""
        farewell, self._farewell = self._farewell, None
        self.outbox = farewell() if farewell is not None else []
        if not self.outbox:
            self.link.linger(self, reason)
            return
        self.outbox_bytes = sum(map(len, self.outbox))
        self.link.outgoing.add(self.outbox_bytes)
        self.drain()  # comes back here when that is sent

    def let_go(self) -> None:
        """It is closed: release all that waits for it or belongs to it."""
        link = self.link
        link.outgoing.remove(self.outbox_bytes + self.packed_bytes)
        link.outgoing.forget(self)
        self.partial.let_go()
        self.fd = -1
        self.outbox = []
        self.outbox_bytes = self.packed_bytes = 0
        self.wire = NO_WIRE
        self._farewell = None

    def _settle_pressure(self, was_congested: bool) -> None:
        """Senders that held back go on, and so does reading, if the peer has taken enough."""
        if (was_congested and not self._backed_up) or (self.passed_by and not self.outbox):
            self.passed_by = False
            self.session.relieved()
        self.update_interest()

    def _send_once(self) -> int:
        outbox = self.outbox
        if len(outbox) == 1:
            return send(self.fd, outbox[0])
        if self.outbox_bytes <= JOIN_BYTES_MAX:
            self.outbox = [b"".join(outbox)]
            return send(self.fd, self.outbox[0])
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
