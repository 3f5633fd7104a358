"""The front's listeners and what it opens."""

from __future__ import annotations

import socket
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Request

from magnetar.core.link.front import Door, Refusal
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import running
from magnetar.core.testing.line import Line
from magnetar.wire.mqtt.front import MountPoint, MqttFront
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.tests import peer


async def test_without_clients_nothing_is_stored() -> None:
    async with running() as broker:
        front = MqttFront(broker, [MountPoint(MqttOptions())])
        await front.open()
        assert broker.topics == {}


async def test_each_door_has_a_listener_that_explains_refusals() -> None:
    async with running() as broker:
        with socket.socket() as sock:
            front = MqttFront(broker, [MountPoint(MqttOptions(), [Door("mqtt", sock)])])
            (listener,) = front.listeners
            assert (listener.door.name, listener.refusal) == ("mqtt", Refusal.EXPLAINED)
            front.close()
            assert sock.fileno() < 0


async def test_the_same_protocol_over_websocket() -> None:
    async with running() as broker:
        with socket.socket() as sock:
            door = Door("mqtt_ws", sock)
            front = MqttFront(
                broker, [MountPoint(MqttOptions(), (), [door])], lambda origin, _: origin == "o"
            )
            (listener,) = front.listeners
            assert (listener.door, listener.refusal) == (door, Refusal.EXPLAINED)
            connection: Any = Line("1.2.3.4:1")
            wire, session = listener.protocol(connection)
            client = WSConnection(ConnectionType.CLIENT)
            wire.feed(client.send(Request(host="h", target="/mqtt", subprotocols=["mqtt"])))
            client.receive_data(b"".join(wire.take_outgoing()))
            wire.feed(client.send(BytesMessage(peer.connect("c"))))
            for event in wire.take_events():
                session.handle(event)
            await settled()
            client.receive_data(b"".join(wire.take_outgoing()))
            accept, message = client.events()
            assert isinstance(accept, AcceptConnection)
            assert accept.subprotocol == "mqtt"  # [MQTT-6.0.0-4]
            assert isinstance(message, BytesMessage)
            assert [one.kind for one in peer.parse([bytes(message.data)])] == ["CONNACK"]
            front.close()
            assert sock.fileno() < 0
