"""The bookie's front: its listener, and wire and session of each connection.

A connection beyond the link's limits is closed: the protocol has no unrequested response, and
clients try again later.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.requests.session import BookieSession
from magnetar.bookie.rpc.wire import BookieWire
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal


class BookieFront:
    """Makes wire and session of each new connection."""

    def __init__(self, services: BookieServices, doors: Sequence[Door] = ()) -> None:
        self.services = services
        self._doors = doors

    @property
    def listeners(self) -> Sequence[Listener]:
        return [Listener(door, self.connected, Refusal.CLOSED) for door in self._doors]

    def connected(self, connection: Connection) -> tuple[BookieWire, BookieSession]:
        """The protocol of a new connection."""
        services = self.services
        size_max = services.limits.netty_max_frame_size_bytes
        wire = BookieWire(size_max, stops_for_tls=services.tls is not None)
        return wire, BookieSession(services, connection, wire)

    async def open(self) -> None:
        """Nothing is loaded: ledgers are read as they are used."""

    async def run(self) -> None:
        """Serve until cancelled."""
        await self.services.deadlines.run()

    async def stop(self) -> None:
        """Connections have nothing that is not stored."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
