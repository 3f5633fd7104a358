"""Accepts connections, up to limits in all and per address.

If its protocol can state a reason (`Refusal.EXPLAINED`), a connection beyond a limit is accepted
and gets the refusal in reply to its first request; few of these may wait, and they do not count
against the limits. Any other connection beyond a limit is closed at once.

When the process has no descriptor left, a listener would stay ready and the loop would spin. So it
is not watched until the next `wake`, and its peers wait in the system's queue. The log has one line
when that begins and one when it ends.

Invariant: between `listen` and `stop` a listener is watched unless it waits for `wake`.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.core.kernel.complaints import Complaints
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Protocol, Refusal
from magnetar.core.link.readiness.poller import READ, Poller

if TYPE_CHECKING:
    from magnetar.core.link.limits import LinkLimits

log = logging.getLogger(__name__)

ACCEPTS_MAX: Final = 16
"""Connections accepted from one listener in one sweep; each takes half a millisecond."""
LISTEN_BACKLOG: Final = 1024


class Accepted(NamedTuple):
    """An accepted connection."""

    listener: Listener
    socket: socket.socket
    peer: str
    refusal: str
    """The reason why it exceeds a limit; empty if it does not."""


class Acceptor:
    """See the module's docstring."""

    def __init__(self, poller: Poller, limits: LinkLimits, complaints: Complaints) -> None:
        self.accepted = self.refused = 0
        self._complaints = complaints
        self._poller = poller
        self._limits = limits
        self._listeners: dict[int, Listener] = {}
        self._resting: set[int] = set()
        self._troubled: set[int] = set()
        """Descriptors of listeners whose last attempt failed."""
        self._per_address: Counter[str] = Counter()
        self._present = 0
        self._refusing: dict[Connection, float] = {}
        """Connections beyond the limit and when each is closed at the latest, oldest first."""

    def listen(self, listener: Listener) -> None:
        """Accept on a bound socket from now on."""
        listener.door.socket.setblocking(False)
        listener.door.socket.listen(LISTEN_BACKLOG)
        self._listeners[listener.door.socket.fileno()] = listener
        self._poller.watch(listener.door.socket.fileno(), READ)

    def stop(self) -> None:
        """Stop listening."""
        for fd, listener in self._listeners.items():
            self._poller.forget(fd)
            listener.door.socket.close()
        self._listeners.clear()
        self._resting.clear()

    def __contains__(self, fd: int) -> bool:
        return fd in self._listeners

    # -- coming -------------------------------------------------------------------------------

    def accept(self, fd: int) -> Iterator[Accepted]:
        """Accept waiting connections. Each is to `enter` before the next is accepted."""
        listener = self._listeners[fd]
        for _ in range(ACCEPTS_MAX):
            try:
                sock, address = listener.door.socket.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue  # it has gone while it waited
            except OSError as error:
                self._rest(fd, error)
                return
            if fd in self._troubled:
                self._troubled.remove(fd)
                log.warning("%s: accepts again", listener.door.name)
            host = str(address[0])
            refusal = self._refusal(host)
            if refusal and listener.refusal is Refusal.CLOSED:
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield Accepted(listener, sock, f"{host}:{address[1]}", refusal)

    def adopted(self, name: str, sock: socket.socket, protocol: Protocol) -> Accepted:
        """A connection that somebody else has accepted and passes on; it counts like any other, and
        one beyond a limit gets its refusal.
        """
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        address = sock.getpeername()
        host = str(address[0])
        listener = Listener(Door(name, sock), protocol, Refusal.EXPLAINED)
        return Accepted(listener, sock, f"{host}:{address[1]}", self._refusal(host))

    def _rest(self, fd: int, error: OSError) -> None:
        self._poller.change(fd, 0)
        self._resting.add(fd)
        if fd not in self._troubled:
            self._troubled.add(fd)
            name = self._listeners[fd].door.name
            log.warning("%s: cannot accept, and tries again every second: %s", name, error)

    def wake(self) -> None:
        """Watch listeners again that had no descriptor. Call it about once a second."""
        for fd in self._resting:
            self._poller.change(fd, READ)
        self._resting.clear()

    def _refusal(self, host: str) -> str:
        """The reason to refuse one more connection from `host`, which is counted and logged; empty
        if there is none.
        """
        reason = self._obstacle(host)
        if reason:
            self.refused += 1
            text = f"{host}: refused a connection: {reason}"
            self._complaints.say("connections refused", host, text)
        return reason

    def _obstacle(self, host: str) -> str:
        limits = self._limits
        per_address = limits.connections_per_address_max
        if per_address and self._per_address[host] - self._refused_from(host) >= per_address:
            return f"the server has its maximum of {per_address} connections from {host}"
        if self._present - len(self._refusing) >= limits.connections_max:
            return f"the server has its maximum of {limits.connections_max} connections"
        return ""

    def _refused_from(self, host: str) -> int:
        return sum(one.host == host for one in self._refusing)

    # -- being there, and going ---------------------------------------------------------------

    def enter(self, connection: Connection, now: float) -> None:
        """Count a connection, or give one beyond the limit time for its refusal."""
        self.accepted += 1
        self._present += 1
        self._per_address[connection.host] += 1
        if connection.refusal:
            self._refusing[connection] = now + self._limits.refusal_seconds

    def leave(self, connection: Connection) -> None:
        """A connection is closed."""
        self._refusing.pop(connection, None)
        self._present -= 1
        host = connection.host
        self._per_address[host] -= 1
        if not self._per_address[host]:
            del self._per_address[host]

    def displaced_by(self, connection: Connection) -> list[Connection]:
        """The connections to close so that this one may get its refusal."""
        if not connection.refusal:
            return []
        surplus = len(self._refusing) + 1 - max(self._limits.refusals_max, 1)
        return list(islice(self._refusing, max(surplus, 0)))

    def overdue(self, now: float) -> list[Connection]:
        """Refused connections whose time is over."""
        return [one for one, deadline in self._refusing.items() if deadline <= now]
