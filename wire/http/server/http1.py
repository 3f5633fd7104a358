"""HTTP/1.1 on one connection: Hypercorn's, reduced to what this server needs.

Differences from Hypercorn's own connection:

- No HTTP/2, neither in the clear (`Upgrade: h2c`, or a client that starts with it)
  nor over TLS. No client of this server needs it, and it would be a second parser of headers
  under the same access rules. Such an `Upgrade` is ignored, as RFC 9110 7.8 allows.
- A connection that begins with a request for a WebSocket is passed on before it is read
  (`HttpOptions.pass_on`). On one that has had another request, such an `Upgrade` is ignored.
- A malformed request gets a reason: `{"reason": ...}`, as from every path.
- A target in absolute form is accepted, as RFC 9112 3.2.2 demands; its host counts, not `Host`.
- `Connection: close` takes effect also after an answer that is sent in pieces.
- Content-Length and Transfer-Encoding together are refused. RFC 9112 6.3 lets the second win, but a
  proxy in front may have used the first: then one request is smuggled inside another.
- A client whose handshake fails is told why, by TLS's alert.
- A connection ends when its client disconnects: Hypercorn's would wait for another request until
  the idle timeout, and take up a place in the connection limit.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Final

import h11
import msgspec
import trio
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Request, StreamClosed
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from magnetar.core.link.layers.tls import TlsParts
from magnetar.wire.http.options import WEBSOCKETS, PassOn
from magnetar.wire.http.request import TLS_STATE

REQUEST_SECONDS_MAX: Final = 10.0
"""Time from the start of a connection, or the end of its handshake, to the end of its first header,
so that silent clients take up no places. Between requests it may be idle for longer.
"""
PIECE_BYTES: Final = 64 * 1024
PIECE_SECONDS_MAX: Final = 20.0
"""Time for a client to receive a piece of an answer; after that its connection is closed."""
ALERT_SECONDS_MAX: Final = 1.0
"""Time for a client to read why there is no handshake, and to hang up."""
REASONS: Final = {
    431: "the head of the request is too long",
    505: "this server speaks HTTP/1.1 only",
}
"""Reasons by status, where they are better than h11's own."""


class RequestReader(h11.Connection):
    """Reads requests with h11, a little stricter; `refused` has the reason of a refusal."""

    refused = ""

    def next_event(self) -> Any:
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check(event)
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            self.refused = REASONS.get(status) or f"this is not a request of HTTP/1.1: {error}"
            raise
        return event


def _check(request: h11.Request) -> None:
    names = {name for name, _ in request.headers}  # h11 makes them lower-case
    if names >= {b"content-length", b"transfer-encoding"}:
        both = "it has a Content-Length and a Transfer-Encoding"
        raise h11.RemoteProtocolError(both, error_status_hint=400)
    if request.http_version not in (b"1.1", b"1.0"):
        raise h11.RemoteProtocolError("another version", error_status_hint=505)


Headers = list[tuple[bytes, bytes]]


def _in_origin_form(request: h11.Request) -> tuple[bytes, Headers]:
    """Path and query, and the headers, with the `Host` of an absolute target."""
    target, headers = request.target, list(request.headers)
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return target, headers
    host, slash, path = rest.partition(b"/")
    others = [(name, value) for name, value in headers if name != b"host"]
    return (slash + path) or b"/", [(b"host", host), *others]


class Http1(H11Protocol):
    """See the module's docstring."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._requests = RequestReader(
            h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_size
        )
        self.connection = self._requests

    async def _check_protocol(self, event: h11.Request) -> None:
        """Do nothing: there is no other protocol to switch to."""

    async def _create_stream(self, request: h11.Request) -> None:
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        target, headers = _in_origin_form(request)
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=headers,
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1
        await self.context.mark_request()

    async def stream_send(self, event: StreamEvent) -> None:
        """Shield the end of an answer from cancellation. The application learns of the end while it
        is being handled, and may then cancel the task that sends its pieces; the connection must
        still be closed, or made ready for the next request.
        """
        if not isinstance(event, StreamClosed):
            await super().stream_send(event)
            return
        with trio.CancelScope(shield=True) as closing:
            closing.deadline = trio.current_time() + PIECE_SECONDS_MAX
            await super().stream_send(event)

    async def _send_error_response(self, status_code: int) -> None:
        body = msgspec.json.encode({"reason": self._requests.refused})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.config.response_headers("h11"),
        ]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


class Http1Connection(TCPServer):
    """One connection, from its handshake to its end."""

    _gone = False
    _fresh = True
    _until = 0.0
    """When its first header has to be there."""
    _begin = b""
    """The first bytes, which were read to find out what they begin."""
    pass_on: PassOn | None = None
    """Takes over a connection whose first request is for a WebSocket."""

    async def run(self) -> None:
        """Serve until either side closes the connection."""
        tls = isinstance(self.stream, trio.SSLStream)
        if tls:
            try:
                with trio.fail_after(self.config.ssl_handshake_timeout):
                    await self.stream.do_handshake()
            except trio.TooSlowError:
                return
            except trio.BrokenResourceError:
                with trio.move_on_after(ALERT_SECONDS_MAX):
                    await _say_why(self.stream)
                return
        self._until = trio.current_time() + REQUEST_SECONDS_MAX
        if self.pass_on is not None and await self._asks_for_websocket(self._until):
            with suppress(OSError):  # the client has disconnected
                self._leave(self.pass_on, tls=tls)
            return
        try:
            await self._serve(tls)
        except OSError:
            pass  # the client has disconnected
        finally:
            await self._close()

    async def _asks_for_websocket(self, until: float) -> bool:
        """Read as many bytes as it takes to know."""
        with trio.move_on_at(until), suppress(trio.BrokenResourceError):
            while WEBSOCKETS.startswith(self._begin):
                more = await self.stream.receive_some(PIECE_BYTES)
                if not more:
                    break
                self._begin += more
        return self._begin.startswith(WEBSOCKETS)

    def _leave(self, pass_on: PassOn, *, tls: bool) -> None:
        """Pass the connection on, with its TLS."""
        stream: Any = self.stream
        parts = None
        if tls:
            parts = _tls_of(stream, self._begin)
            stream = stream.transport_stream
        sock = socket.socket(fileno=stream.socket.detach())
        try:
            pass_on(sock, parts, self._begin if parts is None else b"")
        except OSError:
            sock.close()
            raise

    async def _serve(self, tls: bool) -> None:
        stream: Any = self.stream.transport_stream if tls else self.stream
        sock = stream.socket
        client = parse_socket_addr(sock.family, sock.getpeername())
        server = parse_socket_addr(sock.family, sock.getsockname())
        async with TaskGroup() as group:
            self._task_group = group
            protocol: Any = Http1(
                self.app,
                self.config,
                self.context,
                group,
                ConnectionState({TLS_STATE: self.stream._ssl_object if tls else None}),
                tls,
                client,
                server,
                self.protocol_send,
            )
            self.protocol = protocol
            await self.idle_task.restart(group, self._idle_timeout)
            begin, self._begin = self._begin, b""
            if begin:
                await protocol.handle(RawData(begin))
            await self._read_data()

    async def protocol_send(self, event: Event) -> None:
        """Send with a time limit: Hypercorn's waits for ever for a client that does not read."""
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                await self._send(event.data)
            except (
                trio.BrokenResourceError,
                trio.ClosedResourceError,
                trio.BusyResourceError,  # it is being closed because a request was incomplete
            ):
                await self.protocol.handle(Closed())

    async def _send(self, data: bytes) -> None:
        """Send piece by piece; the end of the handler does not cut it short."""
        for at in range(0, len(data), PIECE_BYTES):
            piece = data[at : at + PIECE_BYTES]
            with trio.CancelScope(shield=True) as sending:
                sending.deadline = trio.current_time() + PIECE_SECONDS_MAX
                await self.stream.send_all(piece)
            if sending.cancelled_caught:
                await trio.aclose_forcefully(self.stream)
                raise trio.BrokenResourceError("the client does not read")

    async def _read_data(self) -> None:
        await super()._read_data()
        self._gone = True
        await self.idle_task.stop()

    async def _idle_timeout(self) -> None:
        if self._gone:
            return
        if not self._fresh:
            await super()._idle_timeout()
            return
        self._fresh = False
        await trio.sleep_until(self._until)  # cancelled by a request
        await self._initiate_server_close()


def _tls_of(stream: Any, plain: bytes) -> TlsParts:
    """What a stream has of TLS. Trio 0.27 to 0.35 have it by the same names, and no way to ask.

    A session ticket, which OpenSSL makes at the end of the handshake, waits there for the first
    write: without it, no later record is right.
    """
    delayed = stream._delayed_outgoing
    if delayed:
        stream._outgoing.write(delayed)
        stream._delayed_outgoing = None
    return TlsParts(stream._ssl_object, stream._incoming, stream._outgoing, plain)


async def _say_why(stream: trio.SSLStream[trio.SocketStream]) -> None:
    """Send the alert of a handshake that has failed, as "certificate required": OpenSSL has made
    one, if that was not the client's doing, and trio's stream leaves it there (`_retry` of 0.35).

    What the client sends meanwhile is read: to close before that would reset the connection, and
    take the alert away from it.
    """
    alert, transport = stream._outgoing.read(), stream.transport_stream
    if alert:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await transport.send_all(alert)
            await transport.send_eof()
            while await transport.receive_some(PIECE_BYTES):
                pass
