"""The Kafka front: its listeners, and wire and session of each connection.

The declarations of a protocol with seventy kinds of messages take 40 ms to import, a tenth of a
start. So they are imported once the server is up (`warm_up`), or when the first client connects,
whichever is sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.spare_files import Lend
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.core.link.wire import NO_SESSION, NO_WIRE, Session, Wire
from magnetar.wire.kafka.addresses import Endpoint, parsed
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.services import KafkaServices

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.handlers import RequestHandlers
    from magnetar.wire.kafka.session.session import KafkaSession
    from magnetar.wire.kafka.wire import KafkaWire

PARTS: Final = (
    "magnetar.wire.kafka.codec.declare",
    "magnetar.wire.kafka.codec.decoder",
    "magnetar.wire.kafka.codec.encoder",
    *(
        f"magnetar.wire.kafka.messages.{name}"
        for name in (
            "parts",
            "acls",
            "quorum",
            "basics",
            "records",
            "topics",
            "groups",
            "offsets",
            "transactions",
            "configs",
            "sasl",
            "scram",
            "quotas",
            "consumer_groups",
        )
    ),
    "magnetar.wire.kafka.apis",
    "magnetar.wire.kafka.wire",
    "magnetar.wire.kafka.session.handlers",
    "magnetar.wire.kafka.session.session",
)
"""In an order in which each imports little else."""


class KafkaFront:
    """Makes wire and session of each new connection."""

    def __init__(
        self,
        broker: Broker,
        options: KafkaOptions,
        doors: Sequence[Door] = (),
        lend: Lend = nullcontext,
    ) -> None:
        self.services = KafkaServices(broker, options)
        self.options = options
        self._doors = doors
        self._lend = lend
        """Lends file descriptors to late imports."""
        self._handlers: RequestHandlers | None = None
        """Made with the first session."""

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection beyond the limit is closed: the protocol has no unrequested reply, and
        clients back off after a broken connection (`reconnect.backoff.ms`).
        """
        return [Listener(door, self.counted(door.name), Refusal.CLOSED) for door in self._doors]

    async def stop(self) -> None:
        """Connections have nothing that is not stored."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()

    async def open(self) -> None:
        await self.services.open()

    def listener(self, name: str) -> Callable[[Connection], tuple[KafkaWire, KafkaSession]]:
        """The protocol for one listener."""
        fixed = self.options.advertised.get(name)

        def connected(connection: Connection) -> tuple[KafkaWire, KafkaSession]:
            with self._lend():
                from magnetar.wire.kafka.session.context import Caller
                from magnetar.wire.kafka.session.handlers import RequestHandlers
                from magnetar.wire.kafka.session.session import KafkaSession
                from magnetar.wire.kafka.wire import HELLO_BYTES_MAX, KafkaWire

            if fixed is not None:
                address = parsed(fixed)
            else:
                host, port = connection.reached_at
                address = Endpoint(self.options.host or host, port)
            if self._handlers is None:
                self._handlers = RequestHandlers(self.services)
            access = self.services.broker.access
            wire, caller = KafkaWire(), Caller(connection, address, name, access)
            if not caller.admitted:
                wire.frame_bytes_max = HELLO_BYTES_MAX
            return wire, KafkaSession(self._handlers, caller, wire)

        return connected

    def counted(self, name: str) -> Callable[[Connection], tuple[Wire, Session]]:
        """The same, but nothing is read from a connection beyond the quota of its address. It is
        closed after the wait that a client would not keep by itself (KIP-612).
        """
        connected, quotas = self.listener(name), self.services.quotas

        def protocol(connection: Connection) -> tuple[Wire, Session]:
            wait = quotas.arrived(connection.host) if quotas.counts_connections else 0
            if not wait:
                return connected(connection)
            connection.complain("connections beyond a quota", "closed: too many new connections")
            self.services.broker.spawn(_turned_away, connection, wait)
            return NO_WIRE, NO_SESSION

        return protocol

    async def run(self) -> None:
        """Import the protocol, unless nobody can connect, and run the services until cancelled."""
        if self._doors:
            await warm_up(self._lend)
        await self.services.run()


async def _turned_away(connection: Connection, wait: float) -> None:
    await trio.sleep(wait)
    connection.end("too many new connections from its address")


async def warm_up(lend: Lend = nullcontext) -> None:
    """Import the modules that the first client needs, one at a time."""
    for part in PARTS:
        with lend():
            import_module(part)
        await trio.lowlevel.checkpoint()
