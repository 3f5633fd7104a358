"""The Pulsar front: its listeners, and wire and session of each connection."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.broker.broker import Broker
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.session.services import PulsarServices
from magnetar.wire.pulsar.session.session import PulsarSession
from magnetar.wire.pulsar.wire import PulsarWire


class PulsarFront:
    """See the module's docstring."""

    def __init__(self, broker: Broker, options: PulsarOptions, doors: Sequence[Door] = ()) -> None:
        self.services = PulsarServices(broker, options)
        self._doors = doors

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection beyond the limit gets an error, which clients accept in reply to CONNECT."""
        return [Listener(door, self.connect, Refusal.EXPLAINED) for door in self._doors]

    def connect(self, connection: Connection) -> tuple[PulsarWire, PulsarSession]:
        """Make wire and session of a new connection."""
        guarded = self.services.broker.access.asks
        wire = PulsarWire(self.services.options.wire, guarded=guarded)
        return wire, PulsarSession(self.services, connection, wire)

    async def open(self) -> None:
        """Load transactions; all other state is the broker's: topics and cursors."""
        await self.services.coordinated.open()

    async def run(self) -> None:
        """Abort transactions whose time is over."""
        await self.services.coordinated.run()

    async def stop(self) -> None:
        """Connections have nothing that is not stored."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
