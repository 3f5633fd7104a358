"""A session without a socket: bytes in, bytes out, a broker over fakes behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.line import Line
from magnetar.wire.pulsar.session.front import PulsarFront
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.tests import peer


class Player:
    """One client: `receive` what the broker says after `says`-ing something."""

    def __init__(self, front: PulsarFront, name: str) -> None:
        self.line = Line(name)
        connection: Any = self.line
        self.wire, self.session = front.connect(connection)
        self.broker = front.services.broker

    async def says(self, *frames: bytes) -> list[peer.ReceivedFrame]:
        """Send frames; what the broker answers once everything has settled."""
        self.feed(*frames)
        return await self.receive()

    def feed(self, *frames: bytes) -> None:
        self.wire.feed(b"".join(frames))
        for event in self.wire.take_events():
            self.session.handle(event)

    async def receive(self) -> list[peer.ReceivedFrame]:
        await settled()
        self.broker.dispatch()
        await settled()
        self.broker.dispatch()
        return peer.parse_frames(self.wire.take_outgoing())

    async def says_one(self, *frames: bytes) -> peer.ReceivedFrame:
        """As `says`, where one answer is expected."""
        (received,) = await self.says(*frames)
        return received


class Stage:
    """A broker and its clients."""

    def __init__(self, stores: Stores, broker: Broker) -> None:
        self.stores = stores
        self.broker = broker
        self._players = 0
        self._fronts: dict[tuple[Any, ...], PulsarFront] = {}

    def stranger(self, **options: Any) -> Player:
        """A client that has said nothing yet. Those with the same options share a front."""
        key = tuple(sorted(options.items()))
        if key not in self._fronts:
            self._fronts[key] = PulsarFront(self.broker, PulsarOptions(**options))
        self._players += 1
        return Player(self._fronts[key], f"1.2.3.4:{self._players}")

    async def player(
        self, client_version: str = "Pulsar-CPP-v4.2.0", name: str = "", **options: Any
    ) -> Player:
        """A client that has introduced itself, with its name as a token if it has one."""
        made = self.stranger(**options)
        said: dict[str, Any] = {"client_version": client_version}
        if name:
            said |= {"auth_method_name": "token", "auth_data": name.encode()}
        (received,) = await made.says(peer.connect(**said))
        assert received.kind == "CONNECTED"
        return made

    async def permit(self, admin: str = "", subscriptions: Any = None, **granted: str) -> None:
        """Store who administers `public`, what others may do in `public/default` (words with a
        space between), and who may use which subscriptions there. The judge knows it then.
        """
        catalog, namespace = self.broker.catalog, NamespaceName.parse("public/default")
        tenant = Tenant([admin] if admin else [], [catalog.cluster])
        await catalog.put_tenant("public", tenant, create=False)
        permitted = {role: words.split() for role, words in granted.items()}
        auth = AuthPolicies(permitted, {}, subscriptions or {})
        policies = msgspec.structs.replace(await catalog.policies(namespace), auth_policies=auth)
        await catalog.set_policies(namespace, policies)
        await self.broker.rules.settled()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores) as broker:
        yield Stage(stores, broker)


@pytest.fixture
async def guarded_stage() -> AsyncIterator[Stage]:
    """Everybody has to say a name; `root` is a superuser."""
    stores = Stores()
    async with running(stores, access=guarded(superusers=["root"])) as broker:
        yield Stage(stores, broker)


@pytest.fixture
async def slow_stage() -> AsyncIterator[Stage]:
    """Storage confirms when told to."""
    stores = Stores(sync_at_once=False)
    async with running(stores) as broker:
        yield Stage(stores, broker)


def kinds(received: list[peer.ReceivedFrame]) -> list[str]:
    return [each.kind for each in received]


def ids(received: list[peer.ReceivedFrame]) -> list[tuple[int, int]]:
    """Of the messages among what was heard."""
    return [
        (each.body.message_id.ledger_id, each.body.message_id.entry_id)
        for each in received
        if each.kind == "MESSAGE"
    ]


async def published(stage: Stage, *payloads: bytes, topic: str = "t") -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, topic))
    received = await client.says(*[peer.send(1, i, each) for i, each in enumerate(payloads)])
    assert kinds(received) == ["SEND_RECEIPT"] * len(payloads)
    await client.says(peer.close_producer(2, 1))


async def consumer(stage: Stage, permits: int = 100, **fields: object) -> Player:
    """A client with one consumer, id 3, on subscription `s` of topic `t`, from the start."""
    client = await stage.player()
    said = {"initial_position": 1, **fields}
    received = await client.says(peer.subscribe(1, 3, "t", "s", **said))
    assert received[-1].kind == "SUCCESS", received
    if permits:
        client.feed(peer.flow(3, permits))
    return client
