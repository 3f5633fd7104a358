"""One Kafka connection without its socket: requests in, responses out, in the same order.

A frame is a size and what it says. Every request takes a place in line when it is parsed; its
response may come at any time, and leaves when all before it have left. A request that has no
response (Produce that asks for none) gives its place up.

Invariant: after `WireError`, or `close`, no byte is parsed any more; a response is packed once, or
never when the connection is closed first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from core.errors import WireError
from wire.kafka import apis
from wire.kafka.codec.declare import Request, Response

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's own limit for a request."""
WORDS_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of a request that brings no records: taken apart it has many times its size in memory."""
BEGINS: Final = (b"\0\0", b"\0", b"")
"""How a frame of Produce, the API with the number 0, begins, as much of it as has come."""
_SIZE = Layout(">i").unpack_from


class Asked:
    """One request, and its place in line."""

    __slots__ = ("client_id", "correlation_id", "key", "pieces", "request", "version")

    def __init__(
        self,
        key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        request: Request | None,
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id or ""
        self.request = request
        """None for ApiVersions of a version that we do not know."""
        self.pieces: list[bytes] | None = None
        """The response, as soon as there is one; empty for none at all."""


class KafkaWire:
    """See the module's docstring."""

    packs_unasked = False

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.frame_bytes_wanted = 0
        self._frame_bytes_max = frame_bytes_max
        self._closed = False
        self._asked: list[Asked] = []
        self._line: deque[Asked] = deque()
        """Requests whose responses have not left, in order."""
        self._outgoing: list[bytes] = []

    @property
    def waiting(self) -> int:
        """Requests that are not answered yet."""
        return len(self._line)

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took."""
        offset, size = 0, len(data)
        self.frame_bytes_wanted = 0
        while size - offset >= 4:
            if self._closed:
                raise WireError("bytes after the end")
            (frame_bytes,) = _SIZE(data, offset)
            if not 0 <= frame_bytes <= self._frame_bytes_max:
                self.close()
                raise WireError(f"a frame of {frame_bytes} bytes")
            end = offset + 4 + frame_bytes
            if frame_bytes > WORDS_BYTES_MAX and data[offset + 4 : offset + 6] not in BEGINS:
                self.close()
                raise WireError(f"a request of {frame_bytes} bytes that brings no records")
            if end > size:
                self.frame_bytes_wanted = end - offset
                break
            try:
                self._take(data[offset + 4 : end])
            except WireError:
                self.close()
                raise
            offset = end
        return offset

    def _take(self, frame: bytes) -> None:
        key, version, correlation_id, client_id, at = apis.decode_header(frame, 0)
        request = apis.decode_request(key, version, frame, at)
        asked = Asked(key, version, correlation_id, client_id, request)
        self._line.append(asked)
        self._asked.append(asked)

    def take_events(self) -> Sequence[Asked]:
        """What was asked since the last call."""
        taken, self._asked = self._asked, []
        return taken

    # -- out ----------------------------------------------------------------------------------

    def answer(self, asked: Asked, response: Response | None) -> None:
        """Pack a response, or that there is none; it leaves when its turn comes."""
        if response is None:
            asked.pieces = []
        else:
            asked.pieces = apis.encode_response(
                asked.key, asked.version, asked.correlation_id, response
            )
        line = self._line
        while line and line[0].pieces is not None:
            self._outgoing += line.popleft().pieces or ()

    def take_outgoing(self) -> list[bytes]:
        """What to send next, in order."""
        taken, self._outgoing = self._outgoing, []
        return taken

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Hear nothing any more; what is packed may still be sent."""
        self._closed = True
        self.frame_bytes_wanted = 0
