"""The session of one connection: its producers, its consumers, and who handles which event.

A handler is a function of (session, event). A plain one acts at once; one that must wait is `async`
and becomes a task of its own when its turn comes (`requests.py` has the limits), so that a slow
request never holds up what comes behind it. When a handler raises a domain error, the client gets
it in the reply type its request asks for.

Invariant: after `closed` nothing is packed any more, and everything attached here is detached.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from magnetar.core.broker.publish_throttle import PublishThrottle
from magnetar.core.kernel.errors import BrokerError, Invalid
from magnetar.core.link.connection import Connection
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES
from magnetar.wire.pulsar import events, refusals
from magnetar.wire.pulsar.session import connect, consume, lookup, query, seek, subscribe
from magnetar.wire.pulsar.session.absent_consumers import AbsentConsumers
from magnetar.wire.pulsar.session.attached_producer import AttachedProducer as AttachedProducer
from magnetar.wire.pulsar.session.produce import HANDLERS as PRODUCE
from magnetar.wire.pulsar.session.produce import detach_all as detach_producers
from magnetar.wire.pulsar.session.requests import RequestHandler, RequestQueue
from magnetar.wire.pulsar.wire import PulsarWire

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.front import PulsarFront

log = logging.getLogger(__name__)

CommandHandler = (
    Callable[["PulsarSession", Any], None] | Callable[["PulsarSession", Any], Awaitable[None]]
)

HANDLERS: Final[Mapping[type, CommandHandler]] = {
    **connect.HANDLERS,
    **lookup.HANDLERS,
    **PRODUCE,
    **subscribe.HANDLERS,
    **consume.HANDLERS,
    **seek.HANDLERS,
    **query.HANDLERS,
}
AT_ONCE: Final[Mapping[type, CommandHandler]] = {
    event: handler
    for event, handler in HANDLERS.items()
    if not inspect.iscoroutinefunction(handler)
}
LATER: Final[Mapping[type, Any]] = {
    event: handler for event, handler in HANDLERS.items() if event not in AT_ONCE
}


REASSURE_SECONDS: Final = 15.0
"""Clients ask every 30, and wait as long for an answer."""


class PulsarSession:
    """See the module's docstring."""

    __slots__ = (
        "away",
        "broker",
        "connection",
        "consumers",
        "consumers_coming",
        "features",
        "gone",
        "lookups",
        "options",
        "peer_version",
        "pending_messages",
        "pong",
        "producers",
        "producers_coming",
        "producers_left",
        "protocol_version",
        "publish_throttle",
        "reassured_at",
        "requests",
        "room",
        "wire",
    )

    def __init__(self, front: PulsarFront, connection: Connection, wire: PulsarWire) -> None:
        self.broker = broker = front.broker
        self.options = front.options
        self.connection = connection
        self.wire = wire
        self.features = events.Features()
        self.peer_version = ""
        self.protocol_version = 0
        self.producers: dict[int, AttachedProducer] = {}
        """By the client's id."""
        self.producers_coming: dict[int, int] = {}
        """Being attached, by the client's id: the request that asks for it."""
        self.producers_left: dict[int, float] = {}
        """When these were closed: what they had sent may still be on its way."""
        self.consumers: dict[int, consume.AttachedConsumer] = {}
        self.consumers_coming: dict[int, int] = {}
        self.away = AbsentConsumers()
        """Consumers that were sent away and are expected back."""
        self.gone = False
        self.pong = trio.Event()
        """Set, and replaced, with each answer to a ping."""
        self.pending_messages = 0
        self.publish_throttle = PublishThrottle(
            broker.clock, broker.spawn, connection, self._reassure
        )
        self.lookups = front.lookups
        """Shared by all connections of the front."""
        self.requests = RequestQueue(self, front.schedule)
        """Those that need time; who begins is shared likewise."""
        self.room = trio.Event()
        """Set, and replaced, when the client has taken what was sent, or has gone."""
        self.reassured_at = broker.clock.monotonic()
        """When a client that is not read last got a sign of life."""

    @property
    def peer(self) -> str:
        return self.connection.peer

    # -- events -------------------------------------------------------------------------------

    def handle(self, event: events.Event) -> None:
        """Act on one event."""
        handler = AT_ONCE.get(type(event))
        if handler is None:
            self.wait_for(LATER[type(event)], event)
            return
        try:
            handler(self, event)
        except BrokerError as error:
            self.refuse(event, error)

    def wait_for(self, handler: RequestHandler, event: events.Event) -> None:
        """Start what must wait as a task of its own, when its turn comes."""
        self.requests.add(handler, event)

    async def answer(self, handler: RequestHandler, event: events.Event) -> None:
        """Act on one event that needs time."""
        try:
            await handler(self, event)
        except BrokerError as error:
            self.refuse(event, error)
        except Exception:
            log.exception("%s: closed, this server failed", self.peer)
            self.connection.end("this server failed")

    def refuse(self, event: events.Event, error: BrokerError) -> None:
        """Tell the client why not."""
        name = type(event).__name__
        self.connection.complain(f"{name} refused", f"{name} refused: {error}")
        if hasattr(event, "request_id"):
            self.reply(refusals.failure(event, error))
        elif isinstance(error, Invalid):
            self.connection.end(str(error))

    def reply(self, frame: bytes) -> None:
        """Pack one reply."""
        if not self.gone:
            self.wire.reply(frame)
            self.connection.touch()

    def reply_large(self, frame: bytes) -> None:
        """Pack one that counts at once in what is to be sent to all."""
        if not self.gone:
            self.wire.reply(frame)
            self.connection.packed(len(frame))

    # -- back-pressure of publishes -----------------------------------------------------------

    def publishes_wait(self, messages: int, size: int) -> None:
        """So many more are on their way to storage; at the limit, read no more."""
        self.pending_messages += messages
        self.connection.storing(size)
        if self.pending_messages >= self.options.pending_messages_max:
            self.connection.pause(PAUSE_PUBLISHES)

    def publishes_done(self, messages: int, size: int) -> None:
        """So many are stored or failed; at half the limit, read on."""
        self.pending_messages -= messages
        self.connection.stored(size)
        if (
            self.connection.paused & PAUSE_PUBLISHES
            and self.pending_messages * 2 <= self.options.pending_messages_max
        ):
            self.connection.resume(PAUSE_PUBLISHES)

    def _reassure(self, now: float) -> bool:
        """A client that is not read gets no PONG for its PING either, and gives the
        connection up after a minute. So it gets its answer unasked: to C++ a word of another kind,
        a question of ours for one, is no sign of life (4.2 was tried).
        """
        if now - self.reassured_at >= REASSURE_SECONDS:
            self.reassured_at = now
            self.wire.pong()
            self.connection.touch()
        return not self.gone

    def reassure(self) -> None:
        """The client is not read because of its requests: it gets a sign of life."""
        self._reassure(self.broker.clock.monotonic())

    # -- life ---------------------------------------------------------------------------------

    silence_seconds_allowed: float = 0.0
    """Both sides ping."""

    def quiet(self) -> None:
        """The peer is silent: ask whether it lives, if it ever introduced itself."""
        connect.on_quiet(self)

    def relieved(self) -> None:
        """The peer reads again: consumers that held back deliver, and requests are answered."""
        self._wake()
        self.requests.relieved()
        for attached in self.consumers.values():
            if attached.consumer.subscription is not None:
                attached.consumer.subscription.look()

    def _wake(self) -> None:
        self.room.set()
        self.room = trio.Event()

    def closed(self, reason: str) -> None:
        """The connection is gone: nothing of it stays attached, and its requests are dropped."""
        self.gone = True
        self.requests.drop()
        self._wake()
        self.wire.close()
        self.wire.take_outgoing()  # nobody will: it would stay until garbage is looked for
        detach_producers(self)
        subscribe.detach_all(self)
