"""The front's listeners and what it opens."""

from __future__ import annotations

import socket

from magnetar.core.link.front import Door, Refusal
from magnetar.core.testing.broker import running
from magnetar.wire.mqtt.front import MqttFront
from magnetar.wire.mqtt.options import MqttOptions


async def test_without_clients_nothing_is_stored() -> None:
    async with running() as broker:
        front = MqttFront(broker, MqttOptions())
        await front.open()
        assert broker.topics == {}


async def test_each_door_has_a_listener_that_explains_refusals() -> None:
    async with running() as broker:
        with socket.socket() as sock:
            front = MqttFront(broker, MqttOptions(), [Door("mqtt", sock)])
            (listener,) = front.listeners
            assert (listener.door.name, listener.refusal) == ("mqtt", Refusal.EXPLAINED)
            front.close()
            assert sock.fileno() < 0
