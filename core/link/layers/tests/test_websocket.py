"""WebSocket as a wire: the handshake, frames, and how a connection ends."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.link.layers.websocket import IDLE_FRAMES_MAX, WebSocketWire
from magnetar.core.link.layers.websocket_options import WebSocketOptions
from magnetar.core.link.tests.echo import Bench, LineWire, SizedWire, receive_end, running

OPTIONS = WebSocketOptions("/lines", ("lines", "older"))


class Client:
    """A client of wsproto, at a wire or at a socket."""

    def __init__(self, **request: object) -> None:
        self.ws = WSConnection(ConnectionType.CLIENT)
        words: dict[str, object] = {"host": "h", "target": "/lines", "subprotocols": ["lines"]}
        self.hello = self.ws.send(Request(**{**words, **request}))

    def hears(self, *pieces: bytes) -> list[Event]:
        for piece in pieces:
            self.ws.receive_data(piece)
        return list(self.ws.events())

    def says(self, data: bytes, *, last: bool = True) -> bytes:
        return self.ws.send(BytesMessage(data, message_finished=last))


def accepted(inner: LineWire | None = None) -> tuple[WebSocketWire, Client]:
    wire, client = WebSocketWire(OPTIONS, inner or LineWire()), Client()
    assert wire.feed(client.hello) == len(client.hello)
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, AcceptConnection)
    assert event.subprotocol == "lines"
    return wire, client


def refused(hello: bytes, options: WebSocketOptions = OPTIONS) -> bytes:
    wire = WebSocketWire(options, LineWire())
    with pytest.raises(WireError):
        wire.feed(hello)
    assert wire.feed(hello) == len(hello)
    assert wire.take_events() == []
    answer = b"".join(wire.take_outgoing())
    assert wire.farewell() == []
    return answer


# -- the handshake ----------------------------------------------------------------------------


def test_frames_right_behind_the_request() -> None:
    wire, client = WebSocketWire(OPTIONS, LineWire()), Client()
    shaken = WebSocketWire(OPTIONS, LineWire())
    shaken.feed(client.hello)
    client.hears(*shaken.take_outgoing())
    wire.feed(client.hello + client.says(b"a\nb\n"))
    assert wire.take_events() == [b"a", b"b"]


def test_a_query_is_ignored() -> None:
    wire = WebSocketWire(OPTIONS, LineWire())
    wire.feed(Client(target="/lines?token=1").hello)
    assert b" 101 " in wire.take_outgoing()[0]


@pytest.mark.parametrize(("offered", "chosen"), [("x older", "older"), ("older lines", "lines")])
def test_the_server_chooses_the_subprotocol(offered: str, chosen: str) -> None:
    wire, client = WebSocketWire(OPTIONS, LineWire()), Client(subprotocols=offered.split())
    wire.feed(client.hello)
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, AcceptConnection)
    assert event.subprotocol == chosen


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        ({"target": "/other"}, 404, b"the path is /lines"),
        ({"subprotocols": []}, 400, b"Sec-WebSocket-Protocol"),
        ({"subprotocols": ["chat"]}, 400, b"Sec-WebSocket-Protocol"),
    ],
)
def test_a_request_that_does_not_fit(request_: dict[str, object], status: int, text: bytes) -> None:
    client = Client(**request_)
    reject, *body = client.hears(refused(client.hello))
    assert isinstance(reject, RejectConnection)
    assert reject.status_code == status
    assert text in b"".join(bytes(one.data) for one in body if isinstance(one, RejectData))


HOST = b"host: h\r\n"
KEYS = b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n"
UPGRADE = b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-protocol: lines\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /lines HTTP/1.1\r\n" + HOST, 426),  # a browser that was typed the address
        (b"GET /lines HTTP/1.1\r\n" + HOST + UPGRADE, 426),
        (b"POST /lines HTTP/1.1\r\n" + HOST + UPGRADE + KEYS, 400),
        (b"GET /lines HTTP/1.1\r\n" + HOST + UPGRADE + KEYS.replace(b"13", b"8"), 426),
        (b"GET /lines HTTP/1.1\r\nhost: \xff\r\n" + UPGRADE + KEYS, 400),
        (b"\x10\x0c\0\4MQTT\4\2\0\x3c\0\0", 400),
        (b"GET /lines HTTP/1.1\r\n" + b"x: y\r\n" * 4000, 400),
    ],
)
def test_what_is_no_request_for_a_websocket(head: bytes, status: int) -> None:
    answer = refused(head + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("begin", [b"\x10", b"\x16\x03\x01", b"\0\0\0\x20"])
def test_another_protocol_is_refused_at_once(begin: bytes) -> None:
    """Its peer would wait for an answer, and the server for the end of a head."""
    assert b"this port speaks WebSocket at /lines" in refused(begin)


def test_an_endless_head_is_refused() -> None:
    wire = WebSocketWire(OPTIONS, LineWire())
    for _ in range(16):
        wire.feed(b"GET /lines HTTP/1.1\r\nx: ".ljust(1024, b"y"))
    assert wire.bytes_held == 16 * 1024
    with pytest.raises(WireError, match="too long"):
        wire.feed(b"y")
    assert wire.bytes_held == 0


def test_pages_of_other_origins() -> None:
    asked = []

    def permits(origin: str, host: str) -> bool:
        asked.append((origin, host))
        return origin == "http://good"

    options = WebSocketOptions("/lines", ("lines",), permits)
    for origin in (b"http://evil", b"null", b"\xff"):
        hello = Client(extra_headers=[(b"Origin", origin)]).hello
        assert refused(hello, options).startswith(b"HTTP/1.1 403 ")
    wire = WebSocketWire(options, LineWire())
    wire.feed(Client(extra_headers=[(b"Origin", b"http://good")]).hello)
    assert b" 101 " in wire.take_outgoing()[0]
    assert asked[-1] == ("http://good", "h")


# -- frames -----------------------------------------------------------------------------------


def test_what_is_packed_is_one_message() -> None:
    wire, client = accepted()
    inner = wire.inner
    assert isinstance(inner, LineWire)
    inner.outgoing += [b"one\n", b"two\n"]
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, BytesMessage)
    assert bytes(event.data) == b"one\ntwo\n"
    assert wire.take_outgoing() == []


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_any_split_gives_the_same(lines: list[bytes], data: st.DataObject) -> None:
    lines = [line.replace(b"\n", b".").replace(b"!", b".") for line in lines]
    wire, client = accepted()
    stream = b"".join(line + b"\n" for line in lines)
    sent = b""
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        sent += client.says(stream[:size], last=data.draw(st.booleans()) or size == len(stream))
        if data.draw(st.booleans()):
            sent += client.ws.send(Ping(b"p"))
        stream = stream[size:]
    pings = 0
    got = []
    while sent:
        size = data.draw(st.integers(1, len(sent)))
        assert wire.feed(sent[:size]) == size
        got += wire.take_events()
        pings += len([one for one in client.hears(*wire.take_outgoing()) if isinstance(one, Pong)])
        sent = sent[size:]
    assert got == lines
    assert wire.bytes_held == 0


def test_a_large_frame_in_small_messages_is_not_copied_again_and_again() -> None:
    above = SizedWire()
    fed = 0

    def feed(data: bytes) -> int:
        nonlocal fed
        fed += len(data)
        return SizedWire.feed(above, data)

    above.feed = feed  # type: ignore[method-assign]
    wire, client = accepted(above)
    frame = (200_000).to_bytes(4) + b"x" * 200_000
    for start in range(0, len(frame), 100):
        wire.feed(client.says(frame[start : start + 100]))
    assert above.take_events() == [b"x" * 200_000]
    assert fed < 2 * len(frame)


# -- how it ends ------------------------------------------------------------------------------


def test_text_is_refused() -> None:
    wire, client = accepted()
    with pytest.raises(WireError, match="text"):
        wire.feed(client.ws.send(TextMessage("hello")))
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, CloseConnection)
    assert event.code == 1003


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x82\x01a", 1002),  # not masked
        (b"\xc2\x81\0\0\0\0a", 1002),  # a reserved bit
        (b"\x83\x81\0\0\0\0a", 1002),  # a reserved opcode
        (b"\x80\x81\0\0\0\0a", 1002),  # continues nothing
        (b"\x09\x81\0\0\0\0a", 1002),  # a ping in two frames
        (b"\x89\xfe\x00\x7e\0\0\0\0" + b"a" * 126, 1002),  # a long ping
        (b"\x88\x81\0\0\0\0a", 1002),  # half a status code
        (b"\x82\xff\xff\0\0\0\0\0\0\0\0\0\0\0", 1002),  # a size of 64 bits
    ],
)
def test_frames_against_the_protocol(frame: bytes, code: int) -> None:
    wire, client = accepted()
    wire.feed(client.says(b"before\n"))
    with pytest.raises(WireError):
        wire.feed(frame)
    assert wire.take_events() == [b"before"]
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, CloseConnection)
    assert event.code == code
    assert wire.feed(frame) == len(frame)
    assert wire.farewell() == []


@pytest.mark.parametrize("first", [0x02, 0x8A], ids=["empty", "Pong"])
def test_a_flood_of_frames_without_data(first: int) -> None:
    """A frame with data between them, and they may go on."""
    wire, client = accepted()
    idle = bytes((first, 0x80, 0, 0, 0, 0))
    more = bytes((0 if first == 0x02 else first, 0x80, 0, 0, 0, 0))
    data = bytes((0x80 if first == 0x02 else 0x82, 0x82, 0, 0, 0, 0)) + b"a\n"
    wire.feed(idle + more * (IDLE_FRAMES_MAX - 1) + data)
    assert wire.take_events() == [b"a"]
    with pytest.raises(WireError, match="flood"):
        wire.feed(idle + more * IDLE_FRAMES_MAX)
    *_, event = client.hears(*wire.take_outgoing())
    assert isinstance(event, CloseConnection)
    assert event.code == 1008


def test_the_last_reply_goes_before_the_close_frame() -> None:
    wire, client = accepted()
    with pytest.raises(WireError, match="forbidden"):
        wire.feed(client.says(b"a\n!\n"))
    assert wire.take_events() == [b"a"]
    reply, close = client.hears(*wire.take_outgoing(), *wire.farewell())
    assert isinstance(reply, BytesMessage)
    assert bytes(reply.data) == b"forbidden\n"
    assert isinstance(close, CloseConnection)
    assert close.code == 1002


def test_the_peer_closes() -> None:
    wire, client = accepted()
    last, close = client.says(b"last\n"), client.ws.send(CloseConnection(1000, "bye"))
    with pytest.raises(PeerLeft):
        wire.feed(last + close)
    assert wire.take_events() == [b"last"]
    (event,) = client.hears(*wire.take_outgoing())
    assert isinstance(event, CloseConnection)
    assert event.code == 1000
    assert wire.farewell() == []


# -- on sockets -------------------------------------------------------------------------------


class LinesOverWebSocket(WebSocketWire):
    """What a front makes: lines, over a WebSocket."""

    def __init__(self) -> None:
        super().__init__(OPTIONS, LineWire())

    @property
    def outgoing(self) -> list[bytes]:
        inner = self.inner
        assert isinstance(inner, LineWire)
        return inner.outgoing


@contextlib.asynccontextmanager
async def served(tls: ssl.SSLContext | None = None) -> AsyncIterator[Bench]:
    async with running(wire=LinesOverWebSocket, tls=tls) as bench:  # type: ignore[arg-type]
        yield bench


async def conversation(stream: trio.abc.Stream) -> list[Event]:
    """Shake hands, say a line and `end`, and hear all until the end."""
    client = Client()
    await stream.send_all(client.hello)
    events: list[Event] = []
    while not events:
        events += client.hears(await stream.receive_some())
    await stream.send_all(client.says(b"hello\nend\n"))
    while piece := await stream.receive_some():
        events += client.hears(piece)
    return events


def checked(events: list[Event]) -> None:
    accept, *messages, close = events
    assert isinstance(accept, AcceptConnection)
    assert isinstance(close, CloseConnection)
    said = b"".join(bytes(one.data) for one in messages if isinstance(one, BytesMessage))
    assert said == b"hello\nend\n"


async def test_a_connection_that_the_server_ends() -> None:
    async with served() as bench, await bench.dial() as stream:
        checked(await conversation(stream))


async def test_over_tls(tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = tls_contexts
    async with served(server) as bench:
        stream = trio.SSLStream(await bench.dial(), client, server_hostname="localhost")
        async with stream:
            checked(await conversation(stream))


async def test_a_refusal_is_readable_and_not_the_answer_to_foreign_http() -> None:
    async with served() as bench:
        async with await bench.dial() as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            answer = await receive_end(stream)
        assert answer.startswith(b"HTTP/1.1 426 ")
        assert answer.count(b"HTTP/1.1") == 1
