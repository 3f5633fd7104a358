"""A peer of the server's own protocol on a bare socket: says what it likes, hears what comes.

Everything it says is made by protobuf (`wire/pulsar/tests/peer.py`), or is no frame at all. Every
wait has a deadline.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from struct import unpack_from
from typing import Any, Self

from magnetar.wire.pulsar.tests import peer

DEADLINE_SECONDS = 15.0


class Raw:
    """One connection."""

    def __init__(self, server: Any, receive_bytes: int | None = None, source: str = "") -> None:
        """`receive_bytes`: how much the system takes for this peer while it does not read;
        `source`: the address that it comes from.
        """
        host, _, port = server.pulsar_url.removeprefix("pulsar://").rpartition(":")
        self.socket = socket.socket()
        self.socket.settimeout(DEADLINE_SECONDS)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.bind((source, 0))
        try:
            self.socket.connect((host, int(port)))
        except OSError:
            self.socket.close()
            raise
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, data: bytes) -> Self:
        """Sends it all; that the server closes meanwhile is no error here."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def introduce(self, **fields: Any) -> Self:
        self.say(peer.connect(**fields))
        assert self.receive().kind == "CONNECTED"
        return self

    def receive(self) -> peer.ReceivedFrame:
        """The next frame, whole."""
        while True:
            frame = self._take()
            if frame is not None:
                return frame
            data = self.socket.recv(65536)
            assert data, "the server closed the connection"
            self._heard += data

    def ask(self, data: bytes) -> peer.ReceivedFrame:
        return self.say(data).receive()

    def until_closed(self) -> list[peer.ReceivedFrame]:
        """What comes until the server closes, which it must before the deadline."""
        try:
            while data := self.socket.recv(65536):
                self._heard += data
        except ConnectionResetError:
            pass  # it closed with something of ours unread
        return list(self._frames())

    def _frames(self) -> Iterator[peer.ReceivedFrame]:
        while (frame := self._take()) is not None:
            yield frame

    def _take(self) -> peer.ReceivedFrame | None:
        if len(self._heard) < 4:
            return None
        (size,) = unpack_from(">I", self._heard)
        if len(self._heard) < 4 + size:
            return None
        frame, self._heard = self._heard[: 4 + size], self._heard[4 + size :]
        return peer.parse_frames(frame)[0]
