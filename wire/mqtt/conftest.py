"""Sessions without sockets: bytes in, bytes out, and a broker over fakes behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.cluster.ownership import ALONE, Ownership
from magnetar.core.kernel.errors import WireError
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.line import Line
from magnetar.wire.mqtt.front import MountPoint, MqttFront
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import Received


class RecordedLine(Line):
    """A line that records whether the system probes its peer."""

    def __init__(self, peer: str) -> None:
        super().__init__(peer)
        self.probed = False

    def probe(self) -> None:
        self.probed = True


class Client:
    """One client: `says` sends packets, and returns what the server answers."""

    def __init__(self, front: MqttFront, services: MqttServices, version: int) -> None:
        self.line = RecordedLine("1.2.3.4:1")
        connection: Any = self.line
        self.wire, self.session = front.connect(services, connection)
        self.version = version

    async def says(self, *packets: bytes) -> list[Received]:
        self.feed(*packets)
        return await self.receive()

    def feed(self, *packets: bytes) -> None:
        """What the link does with received bytes."""
        try:
            self.wire.feed(b"".join(packets))
        except WireError as error:
            self._handle()
            self.line.end(str(error))
        else:
            self._handle()

    def _handle(self) -> None:
        for event in self.wire.take_events():
            if self.line.ending is None:
                self.session.handle(event)

    async def receive(self) -> list[Received]:
        await settled()
        return peer.parse(self.wire.take_outgoing(), self.version)

    async def acknowledges(self, *received: Received) -> list[Received]:
        """Acknowledge messages of QoS 1 and 2, up to the end of the exchange."""
        answers: list[Received] = []
        for one in received:
            if one.qos == 1:
                answers += await self.says(peer.acknowledge("PUBACK", one.number))
            elif one.qos:
                answers += await self.says(peer.acknowledge("PUBREC", one.number))
                answers += await self.says(peer.acknowledge("PUBCOMP", one.number))
        return answers

    async def completes(self, *answers: Received) -> list[Received]:
        """Send PUBREL for each PUBREC."""
        received = [one.number for one in answers if one.kind == "PUBREC"]
        return await self.says(*(peer.acknowledge("PUBREL", number) for number in received))

    async def is_cut(self) -> None:
        """The connection breaks."""
        self.session.closed("the peer closed")
        await settled()

    async def leaves(self) -> None:
        """The client disconnects in order."""
        await self.says(peer.disconnect())
        await self.is_cut()


class Stage:
    """A server and its clients."""

    def __init__(self, stores: Stores, broker: Broker, front: MqttFront) -> None:
        self.stores = stores
        self.broker = broker
        self.front = front
        (self.services, *_) = front.services_by_namespace.values()

    def stranger(self, version: int = peer.V3) -> Client:
        """A connection without CONNECT."""
        return Client(self.front, self.services, version)

    async def connected(self, client_id: str = "c", **options: Any) -> Client:
        """A client whose CONNECT is accepted."""
        client, (connack,) = await self.connects(client_id, **options)
        assert (connack.kind, connack.reasons) == ("CONNACK", (0,))
        return client

    async def connects(self, client_id: str = "c", **options: Any) -> tuple[Client, list[Received]]:
        """A new client, and the answer to its CONNECT."""
        client = self.stranger(options.get("version", peer.V3))
        return client, await client.says(peer.connect(client_id, **options))

    async def subscribed(self, client_id: str, *filters: tuple[str, int], **options: Any) -> Client:
        client = await self.connected(client_id, **options)
        (suback, *_) = await client.says(peer.subscribe(*filters, version=client.version))
        assert suback.reasons == tuple(qos & 3 for _, qos in filters)
        return client

    async def forward(self, seconds: float) -> None:
        """Let time pass, and the server's background work run."""
        self.stores.clock.forward(seconds)
        self.services.save_dirty_clients()
        await self.services.keep_alive.close_silent()
        await self.services.sessions.end_due()
        await settled()


Running = Callable[..., AbstractAsyncContextManager[Stage]]


@asynccontextmanager
async def serving(
    stores: Stores | None = None, ownership: Ownership = ALONE, **options: Any
) -> AsyncIterator[Stage]:
    """A server for the length of a block; with the same stores it is a restart after a crash."""
    stores = stores or Stores()
    async with running(stores, ownership) as broker:
        front = MqttFront(broker, [MountPoint(MqttOptions(**options))])
        await front.open()
        yield Stage(stores, broker, front)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with serving() as made:
        yield made
