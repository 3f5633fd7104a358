"""One connection to a bookie: frames out, frames in, nothing that blocks.

A name may stand for several addresses; they are tried in turn until one takes the connection.

A bookie may ask who reads. The proof is one frame in front of all others, which do not wait for its
answer: a token or a ticket takes no second step. It is in version 3, whatever follows: that has an
answer for what is refused. What a bookie refuses ends the connection as an error of permission.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import Any, Final

from magnetar.bookie.machine.addresses import resolving
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.credentials import TICKET
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import WireError

FRAME_BYTES_MAX: Final = 32 * 1024 * 1024
"""More than the largest entry that any bookie stores (`entries.ENTRY_BYTES_MAX`)."""
RECEIVE_BYTES: Final = 512 * 1024
LENGTH_BYTES: Final = 4
OF_TICKETS: Final = (
    ", which has expired, or is signed with another key than its security.ticket_key. Apache's "
    "bookies know no tickets: read from the server then"
)
IN_PROGRESS: Final = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class ReplicaConnection:
    """See the module's docstring. What raises `OSError` or `WireError` has ended it."""

    def __init__(self, host: str, port: int, proof: Authenticate | None = None) -> None:
        with resolving(host, port):
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._addresses = deque((family, address) for family, _, _, _, address in found)
        self.worked = False
        """Whether the bookie has taken the connection."""
        self._outgoing: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = LENGTH_BYTES
        self._proof = proof
        """Until its answer is here."""
        if proof is not None:
            self.send(version3.pack_request(0, proof))
        self._begin()

    def _begin(self) -> None:
        """Connect to the next address that does not fail at once; the failure of another one is
        seen when the socket becomes writable.
        """
        while True:
            try:
                self._connect(*self._addresses.popleft())
                return
            except OSError:
                if not self._addresses:
                    raise

    def _connect(self, family: int, address: Any) -> None:
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.socket.setblocking(False)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._check(self.socket.connect_ex(address), IN_PROGRESS)
        except OSError:
            self.close()
            raise

    def _check(self, code: int, allowed: tuple[int, ...] = (0,)) -> None:
        if code not in allowed:
            raise OSError(code, os.strerror(code))

    def close(self) -> None:
        self.socket.close()

    # -- out ----------------------------------------------------------------------------------

    @property
    def wants_to_write(self) -> bool:
        return not self.worked or bool(self._outgoing)

    def send(self, body: bytes) -> None:
        """Send a frame with this body with the next `write`."""
        self._outgoing += (len(body).to_bytes(LENGTH_BYTES, "big"), body)

    def connected(self) -> bool:
        """Whether the connection is made, now that the socket is writable; False if the next
        address is tried, which has a socket of its own.
        """
        try:
            self._check(self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        except OSError:
            if not self._addresses:
                raise
            self.close()
            self._begin()
            return False
        self.worked = True
        return True

    def write(self) -> None:
        """Send as much as the socket takes."""
        data = b"".join(self._outgoing)
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        self._outgoing = [data[sent:]] if sent < len(data) else []

    # -- in -----------------------------------------------------------------------------------

    def receive(self) -> list[bytes]:
        """The bodies of the frames that are whole now."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionError("it ended the connection")
        self._parts.append(data)
        self._size += len(data)
        frames = self._frames() if self._size >= self._wanted else []
        if frames and self._proof is not None:
            self._check_proof(self._proof, frames.pop(0))
            self._proof = None
        return frames

    def _check_proof(self, proof: Authenticate, frame: bytes) -> None:
        _, answer = version3.parse_response(frame)
        if not isinstance(answer, Authenticate):
            why = f"it refuses the {proof.plugin} of this reader"
            raise PermissionError(
                errno.EACCES, why + (OF_TICKETS if proof.plugin == TICKET else "")
            )

    def _frames(self) -> list[bytes]:
        data = b"".join(self._parts) if len(self._parts) > 1 else self._parts[0]
        frames: list[bytes] = []
        at, end = 0, len(data)
        self._wanted = LENGTH_BYTES
        while end - at >= LENGTH_BYTES:
            size = int.from_bytes(data[at : at + LENGTH_BYTES], "big")
            if size > FRAME_BYTES_MAX:
                raise WireError(f"a frame of {size} bytes, more than {FRAME_BYTES_MAX}")
            after = at + LENGTH_BYTES + size
            if after > end:
                self._wanted = after - at
                break
            frames.append(data[at + LENGTH_BYTES : after])
            at = after
        self._parts = [data[at:]] if at < end else []
        self._size = end - at
        return frames
