"""A visitor of a server that has MQTT clients, too."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from magnetar.core.ports.client_administration import ClientAdministration
from magnetar.core.testing.broker import Stores
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting
from magnetar.wire.mqtt.administration import administration_of
from magnetar.wire.mqtt.conftest import Client, Stage
from magnetar.wire.mqtt.front import MountPoint, MqttFront
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.tests.peer import publish


class Both(Stage):
    """MQTT's clients, and a visitor."""

    visitor: Visitor

    async def asleep(self, name: str, *, filter: str = "t") -> Client:
        client = await self.subscribed(name, (filter, 1), clean=False)
        await client.leaves()
        return client

    async def publish(self, *payloads: bytes, topic: str = "t", retain: bool = False) -> None:
        writer = await self.connected("w")
        for payload in payloads:
            await writer.says(publish(topic, payload, qos=1, number=1, retain=retain))
        await writer.leaves()


@pytest.fixture
async def both() -> AsyncIterator[Both]:
    clients: dict[str, ClientAdministration] = {}
    options = msgspec.structs.replace(OPTIONS, mqtt_clients=clients)
    async with visiting(options) as visitor:
        front = MqttFront(visitor.broker, [MountPoint(MqttOptions())])
        await front.open()
        clients["public/default"] = administration_of(front.services_by_namespace["public/default"])
        made = Both(Stores(), visitor.broker, front)
        made.visitor = visitor
        yield made
