"""WebSocket (RFC 6455) as a wire: it carries the protocol of the wire above it in binary messages.

    HANDSHAKE   the head of an HTTP request is incomplete
    OPEN        frames; their payloads are a stream, whatever frames they come in
    CLOSED      a Close frame, or the refusal of the request, is packed

wsproto has the handshake and the frames. Extensions are not accepted, so nothing is decompressed.
Text is refused, because the protocols above are binary.

A browser lets any page connect to any server, without a preflight, and says in `Origin` where the
page is from: whether a page may connect is the caller's decision (RFC 6455 10.2).

Invariant: before the request is accepted nothing is fed, and only an HTTP response is packed.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.handshake import H11Handshake
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.link.layers.layer import PLAIN_BYTES_MAX, Layer
from magnetar.core.link.layers.websocket_options import WebSocketOptions
from magnetar.core.link.wire import Wire

HEAD_BYTES_MAX: Final = 16 * 1024
IDLE_FRAMES_MAX: Final = 1_000
"""Frames in a row without data, which are a flood: each costs the server 12 us, and its sender
nothing."""
HEAD_END: Final = b"\r\n\r\n"
MEANINGS: Final = {400: "Bad Request", 403: "Forbidden", 404: "Not Found", 426: "Upgrade Required"}


class State(Enum):
    """See the module's docstring."""

    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSED = "closed"


class WebSocketWire(Layer):
    """See the module's docstring."""

    def __init__(self, options: WebSocketOptions, inner: Wire) -> None:
        super().__init__(inner)
        self._options = options
        self._state = State.HANDSHAKE
        self._head = bytearray()
        """The beginning of the request."""
        self._frames = Connection(ConnectionType.SERVER)
        self._idle_frames = 0
        self._outgoing: list[bytes] = []
        self._reason: int = CloseReason.NORMAL_CLOSURE
        """What the Close frame says at the end."""

    @property
    def bytes_held(self) -> int:
        return len(self._plain) + len(self._head)

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        if self._state is State.CLOSED:
            return len(data)
        frames = self._shake_hands(data) if self._state is State.HANDSHAKE else data
        if frames:
            self._take(frames)
        return len(data)

    def _take(self, data: bytes) -> None:
        """Take frames, and feed the wire above with their payloads."""
        plain = self._plain
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                self._check_idle(event)
                if isinstance(event, BytesMessage):
                    plain += event.data
                    if len(plain) >= PLAIN_BYTES_MAX:
                        self._feed_inner()
                elif isinstance(event, Ping):
                    self._outgoing.append(self._frames.send(event.response()))
                elif isinstance(event, TextMessage):
                    self._close(CloseReason.UNSUPPORTED_DATA)
                    raise WireError("WebSocket: a text frame")
                elif isinstance(event, CloseConnection):
                    self._feed_inner()
                    self._pack_inner()
                    self._outgoing.append(self._frames.send(event.response()))
                    self._state = State.CLOSED
                    raise PeerLeft("the peer closed the WebSocket")
            self._feed_inner()
        except RemoteProtocolError as error:
            reason = error.event_hint.code if isinstance(error.event_hint, CloseConnection) else 0
            self._close(reason or CloseReason.PROTOCOL_ERROR)
            raise WireError(f"WebSocket: {error}") from error

    def _check_idle(self, event: Event) -> None:
        """End a connection whose frames carry nothing: empty ones, Ping and Pong."""
        if isinstance(event, BytesMessage) and event.data:
            self._idle_frames = 0
            return
        self._idle_frames += 1
        if self._idle_frames > IDLE_FRAMES_MAX:
            self._close(CloseReason.POLICY_VIOLATION)
            raise WireError("WebSocket: a flood of frames without data")

    def _feed_inner(self) -> None:
        try:
            super()._feed_inner()
        except WireError:
            self._reason = CloseReason.PROTOCOL_ERROR  # its last reply goes first
            raise

    # -- the handshake ------------------------------------------------------------------------

    def _shake_hands(self, data: bytes) -> bytes:
        """Answer the request once it is complete; returns the frames behind it."""
        head = self._head
        begin = max(0, len(head) - len(HEAD_END) + 1)
        head += data
        if head and not (
            head[:1].isalpha() or head[:1].isspace()
        ):  # no method of HTTP, nor a line's end
            text = f"this port speaks WebSocket at {self._options.path}, and this is not HTTP"
            self._refuse(400, text)
        end = head.find(HEAD_END, begin) + len(HEAD_END)
        if end < len(HEAD_END):
            if len(head) > HEAD_BYTES_MAX:
                self._refuse(400, "the head of the request is too long")
            return b""
        rest = bytes(head[end:])
        self._accept(bytes(head[:end]))
        self._head = bytearray()
        return rest

    def _accept(self, head: bytes) -> None:
        handshake = H11Handshake(ConnectionType.SERVER)
        try:
            handshake.receive_data(head)
            (request,) = handshake.events()
            assert isinstance(request, Request)
            chosen = self._chosen(request)
            accepted = handshake.send(AcceptConnection(subprotocol=chosen))
        except RemoteProtocolError as error:
            status = 426 if "header" in str(error) else 400
            self._refuse(status, f"this port speaks WebSocket at {self._options.path}: {error}")
        except (LocalProtocolError, UnicodeError, ValueError):
            self._refuse(400, "this is no request for a WebSocket")
        else:
            self._state = State.OPEN
            self._outgoing.append(accepted)

    def _chosen(self, request: Request) -> str:
        """The subprotocol; refuses a request that does not fit."""
        options = self._options
        path = request.target.partition("?")[0]
        if path != options.path:
            self._refuse(404, f"the path is {options.path}")
        for header, value in request.extra_headers:
            origin = value.decode("latin-1")
            if header == b"origin" and not options.permits(origin, request.host):
                self._refuse(403, f"a page of {origin[:100]!r} may not connect")
        for name in options.subprotocols:
            if name in request.subprotocols:
                return name
        self._refuse(400, f"no Sec-WebSocket-Protocol of {', '.join(options.subprotocols)}")
        raise AssertionError  # `_refuse` raises

    def _refuse(self, status: int, text: str) -> None:
        """Answer the request with an error, and end the connection."""
        self._state = State.CLOSED
        self._head = bytearray()
        body = text.encode() + b"\n"
        more = b"upgrade: websocket\r\nsec-websocket-version: 13\r\n" if status == 426 else b""
        self._outgoing.append(
            b"HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\n%s"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status, MEANINGS[status].encode(), more, len(body), body)
        )
        raise WireError(f"WebSocket refused: {text}")

    # -- out ----------------------------------------------------------------------------------

    def take_outgoing(self) -> list[bytes]:
        if self._state is State.OPEN:
            self._pack_inner()
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def _pack_inner(self) -> None:
        """Pack what the wire above has packed, as one message."""
        pieces = self.inner.take_outgoing()
        if pieces:
            self._outgoing.append(self._frames.send(BytesMessage(b"".join(pieces))))

    def _close(self, reason: int) -> None:
        """Pack the last words of the wire above, and a Close frame."""
        self._pack_inner()
        if self._frames.state is ConnectionState.OPEN:
            self._outgoing.append(self._frames.send(CloseConnection(reason)))
        self._state = State.CLOSED

    def farewell(self) -> list[bytes]:
        if self._state is State.OPEN:
            self._close(self._reason)
        return self.take_outgoing()
