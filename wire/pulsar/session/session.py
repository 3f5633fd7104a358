"""The session of one connection: the table of handlers by event.

Each handler gets an event and belongs to a class that has the services it uses: the client
(`client.py`), its producers (`produce.py`), its consumers (`consume.py`), the broker. A plain
handler acts at once; one that must wait is `async` and becomes a task when its turn comes
(`requests.py` has the limits), so a slow request never holds up those behind it. When a handler
raises a `BrokerError`, the client gets it in the reply type that its request asks for. So does a
client that may not do what it requests (`rights.py`).

Invariants: after `closed`, nothing is packed and everything attached here is detached. While the
client is known, the session is told of changes of rights (`core/security/live.py`), and whatever
lost its right is detached.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.connection import Connection
from magnetar.core.security.identity import Identity
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session import connect, lookup, query, rights, schemas
from magnetar.wire.pulsar.session.client import PulsarClient
from magnetar.wire.pulsar.session.connect import ConnectHandlers
from magnetar.wire.pulsar.session.consumers import consume, seek, subscribe
from magnetar.wire.pulsar.session.consumers.consume import ConnectionConsumers
from magnetar.wire.pulsar.session.consumers.seek import SeekHandlers
from magnetar.wire.pulsar.session.consumers.subscribe import SubscribeHandlers
from magnetar.wire.pulsar.session.lookup import LookupHandlers
from magnetar.wire.pulsar.session.producers import produce
from magnetar.wire.pulsar.session.producers.produce import ConnectionProducers
from magnetar.wire.pulsar.session.query import QueryHandlers
from magnetar.wire.pulsar.session.requests import RequestQueue
from magnetar.wire.pulsar.session.schemas import SchemaHandlers
from magnetar.wire.pulsar.session.transactions import transact
from magnetar.wire.pulsar.session.transactions.participation import TransactionParticipation
from magnetar.wire.pulsar.session.transactions.transact import CoordinatorHandlers
from magnetar.wire.pulsar.session.watches import connection as watches
from magnetar.wire.pulsar.session.watches.connection import ConnectionWatches
from magnetar.wire.pulsar.wire import PulsarWire

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.services import PulsarServices

HANDLERS: Final[Mapping[type, tuple[str, Any]]] = {
    event: (part, handler)
    for part, handlers in (
        ("connecting", connect.HANDLERS),
        ("producers", produce.HANDLERS),
        ("consumers", consume.HANDLERS),
        ("subscribing", subscribe.HANDLERS),
        ("looking_up", lookup.HANDLERS),
        ("seeking", seek.HANDLERS),
        ("querying", query.HANDLERS),
        ("watches", watches.HANDLERS),
        ("schemas", schemas.HANDLERS),
        ("transacting", transact.HANDLERS),
    )
    for event, handler in handlers.items()
}
"""For each event the attribute of the session that handles it, and the method."""
AT_ONCE: Final[Mapping[type, tuple[str, Any]]] = {
    event: (part, handler)
    for event, (part, handler) in HANDLERS.items()
    if not inspect.iscoroutinefunction(handler)
}
FREE: Final[Mapping[type, tuple[str, Any]]] = {
    event: found
    for event, found in AT_ONCE.items()
    if isinstance(rights.RIGHTS[event], rights.Free)
}
"""Those for which no right is asked: all on the path of messages."""


class PulsarSession:
    """See the module's docstring."""

    __slots__ = (
        "_spawn",
        "client",
        "connecting",
        "consumers",
        "looking_up",
        "producers",
        "querying",
        "requests",
        "schemas",
        "seeking",
        "subscribing",
        "transacting",
        "watches",
    )

    def __init__(self, services: PulsarServices, connection: Connection, wire: PulsarWire) -> None:
        broker, options = services.broker, services.options
        clock = broker.clock
        self.client = client = PulsarClient(
            connection, wire, broker.access, clock.monotonic(), self.closed
        )
        self.requests = requests = RequestQueue(client, services.schedule, broker.spawn, clock)
        self.connecting = ConnectHandlers(
            client, requests, options, clock, self._known, self.rights_changed
        )
        self._spawn = broker.spawn
        part = TransactionParticipation(
            client, requests, services.transactions, options.batch_index_acks
        )
        self.producers = ConnectionProducers(
            client, broker, requests, options.pending_messages_max, part
        )
        self.consumers = consumers = ConnectionConsumers(
            client, broker, options.batch_index_acks, part
        )
        self.transacting = CoordinatorHandlers(client, requests, services.transactions)
        self.subscribing = SubscribeHandlers(client, broker, requests, consumers)
        self.looking_up = LookupHandlers(client, broker, requests, services.lookups, options)
        self.seeking = SeekHandlers(client, consumers)
        self.querying = QueryHandlers(client, consumers)
        self.schemas = SchemaHandlers(client, broker)
        self.watches = ConnectionWatches(client, broker, requests, services.lookups)

    # -- events -------------------------------------------------------------------------------

    def handle(self, event: events.Event) -> None:
        """Act on one event."""
        found = FREE.get(type(event))
        try:
            if found is None:
                self._ask(event)
            else:
                part, handler = found
                handler(getattr(self, part), event)
        except BrokerError as error:
            self.client.refuse(event, error)

    def _ask(self, event: events.Event) -> None:
        """Act on an event that needs a right, or time."""
        rights.check(self.client, self.consumers, event)
        part, handler = HANDLERS[type(event)]
        if type(event) in AT_ONCE:
            handler(getattr(self, part), event)
        else:
            self.requests.add(partial(handler, getattr(self, part)), event)

    # -- rights -------------------------------------------------------------------------------

    def _known(self) -> None:
        access = self.client.access
        if access.judge is not None or self.identity.expires_at is not None:
            access.live.add(self)

    @property
    def identity(self) -> Identity:
        """Whose proof must not expire."""
        return self.connecting.authentication.subject

    def rights_changed(self) -> None:
        """Close whatever has lost its right, soon."""
        self.watches.lose_rights()
        if self.producers or self.consumers.attached:
            self._spawn(self._lose_rights)

    async def _lose_rights(self) -> None:
        await self.producers.lose_rights()
        await self.consumers.lose_rights()

    def expired(self) -> None:
        self.connecting.authentication.expired()

    # -- life ---------------------------------------------------------------------------------

    silence_seconds_allowed: float = 0.0
    """Both sides ping."""

    def quiet(self) -> None:
        """The peer is silent: ping it, or disconnect it if it never sent CONNECT."""
        self.client.ping()

    def relieved(self) -> None:
        """The peer receives again: resume deliveries and requests."""
        self.client.wake()
        self.requests.relieved()
        self.consumers.schedule()
        self.watches.relieved()

    def closed(self, reason: str) -> None:
        """Detach everything and drop the waiting requests of a closed connection."""
        self.client.close()
        self.connecting.close()
        self.client.access.live.remove(self)
        self.requests.drop()
        self.watches.detach_all()
        self.producers.detach_all()
        self.consumers.detach_all()
