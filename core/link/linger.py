"""Sockets whose last bytes are sent, kept open until the peer has received them.

A socket that is closed with bytes of its peer unread resets the connection, and a reset throws away
what was still on its way to that peer: receipts, and the reason why it is sent away. So the writing
side is shut first, and what still comes is read into one shared buffer and forgotten, until the
peer closes too or its time is over.

This is no connection any more: its session knows that it is closed.

Invariant: each socket in here is watched for READ, and closed when it leaves.
"""

from __future__ import annotations

import socket
from typing import Final

from magnetar.core.link.poller import READ, Poller

RECEIVE_BYTES: Final = 64 * 1024
"""Thrown away at once of one peer: others wait for it."""
LINGER_SECONDS: Final = 2.0
"""For a peer to hear the last word and close, or for all of them when the server stops: then it is
closed, whatever is still on its way.
"""
LINGERING_MAX: Final = 256
"""Peers with that time: beyond, the oldest is closed for the next. When the server stops, all."""


class Lingering:
    """See the module's docstring."""

    def __init__(self, poller: Poller, scrap: memoryview) -> None:
        self._poller = poller
        self._scrap = scrap[:RECEIVE_BYTES]
        self._sockets: dict[int, tuple[socket.socket, float]] = {}
        """By descriptor, with when each is closed at the latest: oldest first."""

    def __len__(self) -> int:
        return len(self._sockets)

    def begin(self, sock: socket.socket, deadline: float) -> None:
        """Take over a socket that the poller watches already."""
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # the peer has gone first: nothing can be lost any more
            self._poller.forget(sock.fileno())
            sock.close()
            return
        self._poller.change(sock.fileno(), READ)
        self._sockets[sock.fileno()] = (sock, deadline)

    def receive(self, fd: int) -> None:
        """Throw away what has come, one buffer of it; the end of it is the end of the socket."""
        if fd not in self._sockets:
            return  # closed earlier in this sweep
        try:
            if self._sockets[fd][0].recv_into(self._scrap):
                return
        except BlockingIOError:
            return
        except OSError:
            pass  # broken: it has nothing to hear any more
        self._close(fd)

    def close_overdue(self, now: float) -> None:
        while self._sockets and next(iter(self._sockets.values()))[1] <= now:
            self.close_oldest()

    def close_oldest(self) -> None:
        self._close(next(iter(self._sockets)))

    def close(self) -> None:
        """Close them all."""
        while self._sockets:
            self.close_oldest()

    def _close(self, fd: int) -> None:
        self._poller.forget(fd)
        self._sockets.pop(fd)[0].close()
