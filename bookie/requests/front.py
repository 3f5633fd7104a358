"""The bookie's front: its listener, and wire and session of each connection.

A connection beyond the link's limits is closed: the protocol has no unrequested response, and
clients try again later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.requests.session import BookieSession
from magnetar.bookie.rpc.wire import BookieWire
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal

LOOK_SECONDS: Final = 1.0
"""How often it is looked whether the bookie takes writes."""


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

    async def tell_mode(
        self, set_read_only: Callable[[bool], None], look_seconds: float = LOOK_SECONDS
    ) -> None:
        """Say whether the bookie takes writes, now and whenever that changes, until cancelled."""
        told: bool | None = None
        while True:
            if (writable := self.services.ledgers.writable) != told:
                set_read_only(not writable)
                told = writable
            await trio.sleep(look_seconds)

    async def stop(self) -> None:
        """Connections have nothing that is not stored."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
