"""One receive, one send: what each wake-up of a connection does once.

Descriptors, not sockets: there is nothing to wait for, so nothing of what a socket object knows of
time-outs is needed. The twins in `compiled.pyx` besides keep the interpreter's lock (both calls
only copy), and receive what is large into its place at once.

Invariant: nothing is lost or held here; the caller has all that was taken from the system.
"""

from __future__ import annotations

import os
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
    return left + scratch[: os.readv(fd, [scratch[:size]])]


def py_send(fd: int, data: bytes) -> int:
    """How many bytes the system took. BlockingIOError for none, another OSError for broken."""
    return os.write(fd, data)


def unsent(fd: int) -> int:
    """The number of sent bytes that the peer has not acknowledged; 0 if unknown."""
    if sys.platform != "linux":
        return 0
    try:
        (count,) = _COUNT.unpack(fcntl.ioctl(fd, termios.TIOCOUTQ, bytes(_COUNT.size)))
    except OSError:  # it is broken, as the next send or receive will show
        return 0
    return int(count)


receive = quickest(py_receive, "magnetar.core.link.compiled")
send = quickest(py_send, "magnetar.core.link.compiled")
