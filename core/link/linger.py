"""Lingering sockets: everything is sent, and they stay open until the peer has received it.

Closing a socket with unread bytes resets the connection, and a reset discards bytes that the peer
has not received yet: receipts, or the reason for the close (RFC 9293 3.10.4, RFC 9112 9.6). So the
writing side is shut down first, and bytes that still arrive are discarded, until the peer closes
too or its time is over. (nginx calls this `lingering_close`.)

The connection of such a socket is closed for its session.

Invariant: each socket in here is watched for READ, and closed when it leaves.
"""

from __future__ import annotations

import socket
from typing import Final

from magnetar.core.link.readiness.poller import READ, Poller

RECEIVE_BYTES: Final = 64 * 1024
"""Bytes of one peer that are discarded in one sweep."""
LINGER_SECONDS: Final = 2.0
"""The time for a peer to receive everything and close, and for all of them when the server stops.
"""
LINGERING_MAX: Final = 256
"""Lingering sockets; beyond this number the oldest is closed. No limit when the server stops."""


class Lingering:
    """See the module's docstring."""

    def __init__(self, poller: Poller, scrap: memoryview) -> None:
        self._poller = poller
        self._scrap = scrap[:RECEIVE_BYTES]
        self._sockets: dict[int, tuple[socket.socket, float]] = {}
        """By descriptor, with the time when each is closed at the latest; oldest first."""

    def __len__(self) -> int:
        return len(self._sockets)

    def begin(self, sock: socket.socket, deadline: float) -> None:
        """Take over a socket, which the poller watches."""
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # the peer has closed first, so nothing can be lost
            self._poller.forget(sock.fileno())
            sock.close()
            return
        self._poller.change(sock.fileno(), READ)
        self._sockets[sock.fileno()] = (sock, deadline)

    def receive(self, fd: int) -> None:
        """Discard received bytes, one buffer of them; close the socket at their end."""
        if fd not in self._sockets:
            return  # closed earlier in this sweep
        try:
            if self._sockets[fd][0].recv_into(self._scrap):
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # broken: the peer receives nothing
        self._close(fd)

    def close_overdue(self, now: float) -> None:
        while self._sockets and next(iter(self._sockets.values()))[1] <= now:
            self.close_oldest()

    def close_oldest(self) -> None:
        self._close(next(iter(self._sockets)))

    def close(self) -> None:
        """Close all sockets."""
        while self._sockets:
            self.close_oldest()

    def _close(self, fd: int) -> None:
        self._poller.forget(fd)
        self._sockets.pop(fd)[0].close()
