"""The MQTT front: its listeners, and wire and session of each connection."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.broker.broker import Broker
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.session import MqttSession
from magnetar.wire.mqtt.wire import MqttWire


class MqttFront:
    """Makes wire and session of each new connection."""

    def __init__(self, broker: Broker, options: MqttOptions, doors: Sequence[Door] = ()) -> None:
        self.services = MqttServices(broker, options)
        self._doors = doors

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection beyond the limit gets CONNACK with a reason."""
        return [Listener(door, self.connect, Refusal.EXPLAINED) for door in self._doors]

    def connect(self, connection: Connection) -> tuple[MqttWire, MqttSession]:
        """Make wire and session of a new connection."""
        services = self.services
        services.traffic.connections += 1
        wire = MqttWire(services.options.packet_bytes_max, services.traffic)
        return wire, MqttSession(services, connection, wire)

    async def open(self) -> None:
        await self.services.open()

    async def run(self) -> None:
        await self.services.run()

    async def stop(self) -> None:
        await self.services.stop()

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
