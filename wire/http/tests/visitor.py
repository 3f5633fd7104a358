"""An HTTP client inside the process, and a broker on fakes behind it: what all tests here use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio

from magnetar.core.broker.broker import ALONE, Broker, BrokerSettings
from magnetar.core.cluster.ownership import Ownership
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.names import TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.security.access import Access
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.http.broker_paths import application
from magnetar.wire.http.guard import HostNames
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.round_trip import HealthCheck
from magnetar.wire.http.services import HttpServices

OPTIONS = HttpOptions(
    version="Magnetar 1",
    broker_url="pulsar://127.0.0.1:6650",
    http_url="http://127.0.0.1:8080",
    hosts=HostNames(("here", "a")),
    body_bytes_max=10_000,
)


class Visitor:
    """Asks, and reads what is answered."""

    def __init__(self, broker: Broker, client: httpx.AsyncClient, services: HttpServices) -> None:
        self.broker = broker
        self.services = services
        self.client = client

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """A body that is bytes is sent as it is, any other as JSON."""
        if isinstance(body, bytes):
            more["content"] = body
        elif body is not None:
            more["json"] = body
        return await self.client.request(method, path, **more)

    async def get(self, path: str, **more: Any) -> Any:
        """The JSON of a successful GET; None for 204."""
        response = await self.ask("GET", path, **more)
        assert response.status_code in (200, 204), (path, response.status_code, response.text)
        return response.json() if response.status_code == 200 else None

    async def does(self, method: str, path: str, body: Any = None, **more: Any) -> None:
        """A write that succeeds without a body."""
        response = await self.ask(method, path, body, **more)
        assert response.status_code == 204, (path, response.status_code, response.text)
        assert response.content == b""

    async def fails(self, status: int, method: str, path: str, body: Any = None) -> str:
        """A request that is refused so; returns the reason."""
        response = await self.ask(method, path, body)
        assert response.status_code == status, (path, response.status_code, response.text)
        assert set(response.json()) == {"reason"}
        return str(response.json()["reason"])

    async def topic(self, name: str) -> PersistentTopic:
        """A persistent topic, loaded."""
        found = await self.broker.topic(TopicName.parse(name), any_name=True)
        assert isinstance(found, PersistentTopic)
        return found

    async def publish(self, name: str, payloads: Sequence[bytes]) -> list[tuple[int, int]]:
        """Store messages one by one; returns where each is."""
        topic = await self.topic(name)
        places = []
        for payload in payloads:
            stored = trio.Event()
            results: list[Any] = []

            def done(
                result: Any, stored: trio.Event = stored, results: list[Any] = results
            ) -> None:
                results.append(result)
                stored.set()

            topic.publish([payload], None, done)
            await stored.wait()
            places.append(results[0])
        return places


@asynccontextmanager
async def visiting(
    options: HttpOptions = OPTIONS,
    families: Sequence[Family] = (),
    ledgers: MemoryLedgers | None = None,
    health: HealthCheck | None = None,
    ownership: Ownership = ALONE,
    settings: BrokerSettings | None = None,
    access: Access | None = None,
) -> AsyncIterator[Visitor]:
    """A broker on fakes and a visitor of its HTTP side. What is to be dispatched is, soon."""
    token = trio.lowlevel.current_trio_token()

    def soon() -> None:
        token.run_sync_soon(broker.dispatch, idempotent=True)

    broker = Broker(
        settings or BrokerSettings(),
        ledgers or MemoryLedgers(),
        MemoryMetadata(),
        SystemClock(),
        soon,
        ownership,
    )
    if access is not None:
        broker.guard(access)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        services = HttpServices(broker, options, lambda: families, health=health)
        app = application(services)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            yield Visitor(broker, client, services)
        nursery.cancel_scope.cancel()
