"""A server that says back what it hears, and peers that talk to it."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import trio
import trio.testing

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import WireError
from magnetar.core.link.backend import NoBackend
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal, TlsContext
from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.loop import Link


class LineWire:
    """Lines in, lines out; a line of only `!` is forbidden."""

    packs_unasked = True
    bytes_held = 0

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.outgoing: list[bytes] = []
        self.frame_bytes_wanted = 0

    def feed(self, data: bytes) -> int:
        consumed = 0
        while (end := data.find(b"\n", consumed)) >= 0:
            line = data[consumed:end]
            consumed = end + 1
            if line == b"!":
                self.outgoing.append(b"forbidden\n")
                raise WireError("a forbidden line")
            self.events.append(line)
        return consumed

    def body_in(self, begin: bytes) -> tuple[int, int]:
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        self.feed(frame.whole())

    def take_events(self) -> Sequence[bytes]:
        events, self.events = self.events, []
        return events

    def take_outgoing(self) -> list[bytes]:
        outgoing, self.outgoing = self.outgoing, []
        return outgoing


class SizedWire(LineWire):
    """Frames of a 4-byte size and so many bytes: it can say how much it wants."""

    def feed(self, data: bytes) -> int:
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4])
            if len(data) - at < 4 + size:
                self.frame_bytes_wanted = 4 + size
                return at
            self.events.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        self.frame_bytes_wanted = 0
        return at


class EchoSession:
    """Says back what it hears; remembers what happened to it."""

    silence_seconds_allowed = 0.0

    def __init__(self, connection: Connection, wire: LineWire, events: list[str]) -> None:
        self.connection, self.wire, self.events = connection, wire, events
        self.fails_at_end = False

    def handle(self, event: Any) -> None:
        if self.connection.refusal:
            self.wire.outgoing.append(self.connection.refusal.encode() + b"\n")
            self.connection.end("refused")
            return
        if event == b"fail":
            raise AssertionError("a mistake of ours")
        if event == b"end":
            self.connection.end("asked to")
        self.fails_at_end = event == b"fail at the end"
        self.wire.outgoing.append(event + b"\n")

    def relieved(self) -> None:
        self.events.append("relieved")

    def quiet(self) -> None:
        self.events.append("quiet")
        self.wire.outgoing.append(b"ping\n")
        self.connection.touch()

    def closed(self, reason: str) -> None:
        self.events.append(reason)
        if self.fails_at_end:
            raise AssertionError("a mistake of ours")


class NotedBackend(NoBackend):
    """Notes what it is asked, and has a step of a test's own."""

    def __init__(self) -> None:
        self.congested = False
        self.steps: list[str] = []
        self.at_dispatch: Callable[[], None] = lambda: None

    def begin_group(self) -> None:
        self.steps.append("begin_group")

    def dispatch(self) -> None:
        self.steps.append("dispatch")
        self.at_dispatch()

    def store(self) -> None:
        self.steps.append("store")

    def flush_group(self) -> None:
        self.steps.append("flush_group")


class Bench:
    """A running link with one listener."""

    def __init__(
        self,
        limits: LinkLimits,
        wire: type[LineWire],
        tls: ssl.SSLContext | None,
        refusal: Refusal,
    ) -> None:
        self.link = Link(SystemClock(), limits)
        self.backend = NotedBackend()
        self.link.serve(self.backend, self.backend)
        self.events: list[str] = []
        self.connections: list[Connection] = []
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]

        def protocol(connection: Connection) -> tuple[Any, Any]:
            spoken = wire()
            self.connections.append(connection)
            return spoken, EchoSession(connection, spoken, self.events)

        self.link.listen(
            Listener(Door("lines", sock, TlsContext(tls) if tls else None), protocol, refusal)
        )

    async def dial(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def running(
    limits: LinkLimits | None = None,
    wire: type[LineWire] = LineWire,
    tls: ssl.SSLContext | None = None,
    refusal: Refusal = Refusal.CLOSED,
) -> AsyncIterator[Bench]:
    bench = Bench(limits or LinkLimits(), wire, tls, refusal)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.link.run)
        with trio.fail_after(20):
            yield bench
        nursery.cancel_scope.cancel()


async def receive_exactly(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        assert piece, f"closed after {len(data)} of {count} bytes"
        data += piece
    return data


async def receive_end(stream: trio.abc.ReceiveStream) -> bytes:
    data = b""
    while piece := await stream.receive_some():
        data += piece
    return data
