"""The MQTT front: its listeners, and wire and session of each connection.

A mount point is a namespace with its listeners. Mount points share nothing: topics, client ids,
sessions, retained messages and rules of each are its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.core.link.layers.websocket_options import Permits, WebSocketOptions
from magnetar.wire.mqtt.administration.holder import SessionHolder
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.session import MqttSession
from magnetar.wire.mqtt.wire import MqttWire

if TYPE_CHECKING:
    from magnetar.core.link.layers.websocket import WebSocketWire

log = logging.getLogger(__name__)

PATH: Final = "/mqtt"
"""As EMQX, HiveMQ and the examples of most clients have it."""
SUBPROTOCOLS: Final = ("mqtt", "mqttv3.1")
"""[MQTT-6.0.0-3]; the second one is that of older clients."""


WEBSOCKET: Final = "magnetar.core.link.layers.websocket"
"""With what it imports it takes a tenth of the time to the first message, so it comes later."""


class MountPoint(NamedTuple):
    """A namespace, as its options name it, and its doors."""

    options: MqttOptions
    doors: Sequence[Door] = ()
    websocket_doors: Sequence[Door] = ()


class MqttFront:
    """Makes wire and session of each new connection."""

    def __init__(
        self,
        broker: Broker,
        mount_points: Sequence[MountPoint],
        permits: Permits = lambda _origin, _host: True,
    ) -> None:
        """The first mount point is that of the listeners that everybody uses. `permits` says which
        web pages may connect.
        """
        self._mount_points = mount_points
        self.services_by_namespace = {
            each.options.namespace: MqttServices(broker, each.options) for each in mount_points
        }
        self._websocket = WebSocketOptions(PATH, SUBPROTOCOLS, permits)

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection beyond the limit gets CONNACK with a reason."""
        found = []
        for each in self._mount_points:
            services = self.services_by_namespace[each.options.namespace]
            plain = partial(self.connect, services)
            over_websocket = partial(self.connect_by_websocket, services)
            found += [Listener(door, plain, Refusal.EXPLAINED) for door in each.doors]
            found += [
                Listener(door, over_websocket, Refusal.EXPLAINED) for door in each.websocket_doors
            ]
        return found

    def connect(
        self, services: MqttServices, connection: Connection
    ) -> tuple[MqttWire, MqttSession]:
        """Make wire and session of a new connection."""
        services.traffic.connections += 1
        wire = MqttWire(services.options.packet_bytes_max, services.traffic, services.names)
        return wire, MqttSession(services, connection, wire)

    def connect_by_websocket(
        self, services: MqttServices, connection: Connection
    ) -> tuple[WebSocketWire, MqttSession]:
        """The same for a connection over WebSocket (5.0, 6)."""
        from magnetar.core.link.layers.websocket import WebSocketWire

        wire, session = self.connect(services, connection)
        return WebSocketWire(self._websocket, wire), session

    async def open(self) -> None:
        for namespace, services in self.services_by_namespace.items():
            if not await services.broker.catalog.has_namespace(NamespaceName.parse(namespace)):
                log.warning("MQTT's clients are refused until the namespace %s exists", namespace)
            await services.open()
            services.broker.env.held.add(SessionHolder(services))

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            if any(each.websocket_doors for each in self._mount_points):
                nursery.start_soon(_import_websocket)
            for services in self.services_by_namespace.values():
                nursery.start_soon(services.run)

    async def stop(self) -> None:
        for services in self.services_by_namespace.values():
            await services.stop()

    def close(self) -> None:
        for each in self._mount_points:
            for door in (*each.doors, *each.websocket_doors):
                door.socket.close()


async def _import_websocket() -> None:
    """In a thread: a client that comes first waits for it in the loop."""
    await trio.to_thread.run_sync(import_module, WEBSOCKET)
