"""The peer of a WebSocket, without a socket: JSON in, JSON out, a broker over fakes behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import wsproto
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from magnetar.core.kernel.errors import WireError
from magnetar.core.testing.bench import settled
from magnetar.core.testing.line import Line
from magnetar.wire.pulsar.session.conftest import Stage
from magnetar.wire.pulsar.session.front import PulsarFront
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.session.websockets import WebSockets

PRODUCER = "/ws/v2/producer/persistent/public/default/t"
CONSUMER = "/ws/v2/consumer/persistent/public/default/t/s"
READER = "/ws/v2/reader/persistent/public/default/t"


class Talker:
    """One WebSocket. `status` is 101 once it is open; one `beside` another has the same server."""

    def __init__(self, stage: Stage, *, beside: Talker | None = None, **options: Any) -> None:
        self.stage = stage
        self.line = Line()
        connection: Any = self.line
        self.front = beside.front if beside else PulsarFront(stage.broker, PulsarOptions(**options))
        websockets = WebSockets(self.front, lambda origin, _host: origin == "http://good")
        wire, self.session = websockets.connect(None, connection)
        self.wire: Any = wire
        self._client = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self.status = 0
        self.reason = ""
        self.closed: int | None = None
        self.pings = 0
        self.answers_pings = True
        self.error: WireError | None = None
        self.early: list[Any] = []
        """What came at once."""

    async def open(self, target: str, headers: Mapping[str, str] | None = None) -> Talker:
        """Ask for a WebSocket; `status` tells what became of that."""
        extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        request = Request(host="here", target=target, extra_headers=extra)
        self.feed(self._client.send(request))
        self.early = await self.hear()
        return self

    @property
    def held_bytes(self) -> int:
        """What waits in all WebSockets of the server until it is pulled."""
        return self.front.services.held_entries.used

    def feed(self, data: bytes) -> None:
        """Give bytes to the server, as the link does."""
        try:
            self.wire.feed(data)
        except WireError as error:
            self.error = error
        for event in self.wire.take_events():
            self.session.handle(event)

    async def say(self, *documents: Any) -> list[Any]:
        """Send JSON; what comes back once everything has settled."""
        for each in documents:
            self.send(TextMessage(each if isinstance(each, str) else json.dumps(each)))
        return await self.hear()

    def send(self, event: Event) -> None:
        self.feed(self._client.send(event))

    async def hear(self) -> list[Any]:
        """The documents that have come."""
        found: list[Any] = []
        for _ in range(4):
            await settled()
            self.stage.broker.dispatch()
            found += self._take()
        if self.line.ending is not None:
            found += self._read(self.wire.farewell())
        return found

    def _take(self) -> list[Any]:
        return self._read(self.wire.take_outgoing())

    def _read(self, pieces: Iterable[bytes]) -> list[Any]:
        received = b"".join(map(bytes, pieces))
        if received and self.closed is None:
            self._client.receive_data(received)
        return self._events()

    def _events(self) -> list[Any]:
        found: list[Any] = []
        body = b""
        for event in self._client.events():
            if isinstance(event, AcceptConnection):
                self.status = 101
            elif isinstance(event, RejectConnection):
                self.status = event.status_code
            elif isinstance(event, RejectData):
                body += event.data
                self.reason = json.loads(body)["reason"] if event.body_finished and body else ""
            elif isinstance(event, TextMessage):
                found.append(json.loads(event.data))
            elif isinstance(event, Ping):
                self.pings += 1
                if self.answers_pings:
                    self.send(event.response())
            elif isinstance(event, CloseConnection):
                self.closed, self.reason = event.code, event.reason or ""
        return found


async def opened(
    stage: Stage, target: str, *, beside: Talker | None = None, **options: Any
) -> Talker:
    """A WebSocket that is open."""
    talker = await Talker(stage, beside=beside, **options).open(target)
    assert talker.status == 101, (talker.status, talker.reason)
    return talker
