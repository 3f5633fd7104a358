"""The Pulsar front: what all its connections share, and what an operator may turn."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.wire.pulsar import replies
from magnetar.wire.pulsar.session import lookup
from magnetar.wire.pulsar.session.requests import RequestSchedule
from magnetar.wire.pulsar.session.session import PulsarSession
from magnetar.wire.pulsar.wire import PulsarWire, WireOptions


class PulsarOptions(Struct, frozen=True):
    """What an operator may turn, for all Pulsar connections."""

    server_version: str = "Magnetar"
    address: replies.Address = replies.Address()
    """Where clients are to connect."""
    through_service_url: bool = True
    """Tell clients to stay on the address they dialled: right for loopback and forwarded ports."""
    wire: WireOptions = WireOptions()
    pending_messages_max: int = 10_000
    """Messages of one connection not stored yet: it is not read until half of them are."""
    lookups_max: int = 50_000
    """Answers about topics under way, of all connections together: more are refused."""
    batch_index_acks: bool = True
    """Messages of a batch are acknowledged one by one: on by default since 4.2 (PIP-391)."""
    expose_broker_metadata: bool = False


class PulsarFront:
    """What all connections share; a `Front`."""

    def __init__(self, broker: Broker, options: PulsarOptions, doors: Sequence[Door] = ()) -> None:
        self.broker = broker
        self.options = options
        self.lookups = lookup.LookupLimit(options.lookups_max)
        self.schedule = RequestSchedule(broker.spawn)
        self._doors = doors

    @property
    def listeners(self) -> Sequence[Listener]:
        """One too many is answered with an error: clients read one in answer to their CONNECT."""
        return [Listener(door, self.connect, Refusal.EXPLAINED) for door in self._doors]

    def connect(self, connection: Connection) -> tuple[PulsarWire, PulsarSession]:
        """The two halves of a fresh connection."""
        wire = PulsarWire(self.options.wire)
        return wire, PulsarSession(self, connection, wire)

    async def open(self) -> None:
        """Nothing is its own: topics and cursors are the broker's."""

    async def run(self) -> None:
        """Nothing goes on without connections."""

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()
