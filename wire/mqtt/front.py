"""The MQTT front: its listeners, and wire and session of each connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.broker.broker import Broker
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.core.link.layers.websocket import Permits, WebSocketOptions, WebSocketWire
from magnetar.wire.mqtt.administration.holder import SessionHolder
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.session import MqttSession
from magnetar.wire.mqtt.wire import MqttWire

PATH: Final = "/mqtt"
"""As EMQX, HiveMQ and the examples of most clients have it."""
SUBPROTOCOLS: Final = ("mqtt", "mqttv3.1")
"""[MQTT-6.0.0-3]; the second one is that of older clients."""


class MqttFront:
    """Makes wire and session of each new connection."""

    def __init__(
        self,
        broker: Broker,
        options: MqttOptions,
        doors: Sequence[Door] = (),
        websocket_doors: Sequence[Door] = (),
        permits: Permits = lambda _origin, _host: True,
    ) -> None:
        """`permits` says which web pages may connect."""
        self.services = MqttServices(broker, options)
        self._doors = doors
        self._websocket_doors = websocket_doors
        self._websocket = WebSocketOptions(PATH, SUBPROTOCOLS, permits)

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection beyond the limit gets CONNACK with a reason."""
        return [
            *(Listener(door, self.connect, Refusal.EXPLAINED) for door in self._doors),
            *(
                Listener(door, self.connect_by_websocket, Refusal.EXPLAINED)
                for door in self._websocket_doors
            ),
        ]

    def connect(self, connection: Connection) -> tuple[MqttWire, MqttSession]:
        """Make wire and session of a new connection."""
        services = self.services
        services.traffic.connections += 1
        wire = MqttWire(services.options.packet_bytes_max, services.traffic, services.names)
        return wire, MqttSession(services, connection, wire)

    def connect_by_websocket(self, connection: Connection) -> tuple[WebSocketWire, MqttSession]:
        """The same for a connection over WebSocket (5.0, 6)."""
        wire, session = self.connect(connection)
        return WebSocketWire(self._websocket, wire), session

    async def open(self) -> None:
        await self.services.open()
        self.services.broker.env.held.add(SessionHolder(self.services))

    async def run(self) -> None:
        await self.services.run()

    async def stop(self) -> None:
        await self.services.stop()

    def close(self) -> None:
        for door in (*self._doors, *self._websocket_doors):
            door.socket.close()
