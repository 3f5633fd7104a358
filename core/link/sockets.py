"""One receive, one send: what each wake-up of a connection does once.

They take descriptors, not sockets: the sockets are non-blocking, so the timeouts of socket objects
are of no use. The twins in `compiled.pyx` keep the interpreter's lock (both calls only copy), and
receive large frames directly into their buffers.

Invariant: no state is kept here; the caller gets all received bytes.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Final

from magnetar.core.native import quickest

if sys.platform == "linux":
    import fcntl
    import termios

_COUNT: Final = struct.Struct("=i")


def py_receive(fd: int, left: bytes, scratch: memoryview, size: int) -> bytes:
    """The rest of the last read, followed by up to `size` received bytes.

    No more than before if the peer has closed. BlockingIOError if nothing has come; another OSError
    if the connection is broken. Bytes pass through `scratch` on their way.
    """
    received = os.readv(fd, [scratch[:size]])
    return left + scratch[:received]


def py_send(fd: int, data: bytes) -> int:
    """Send; returns the number of bytes taken. BlockingIOError if none, else OSError if broken."""
    return os.write(fd, data)


def probe(sock: socket.socket) -> None:
    """Have the system probe a peer that is silent for a minute; without an answer for another one,
    the connection ends.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def unsent(fd: int) -> int:
    """The number of sent bytes that the peer has not acknowledged; 0 if unknown."""
    if sys.platform != "linux":
        return 0
    try:
        (count,) = _COUNT.unpack(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(_COUNT.size)))
    except OSError:  # broken; the next send or receive reports it
        return 0
    return int(count)


receive: Final = quickest(py_receive, "magnetar.core.link.compiled")
send: Final = quickest(py_send, "magnetar.core.link.compiled")
