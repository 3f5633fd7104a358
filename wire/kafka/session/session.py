"""The session of one connection: who handles which request, and what keeps their order.

A handler is a function of (session, request) that returns the response. Most are `async` and run as
tasks of their own: a fetch that waits for news holds up nobody, and the wire sees to it that
responses leave in order. Produce is plain where its topics are loaded: batches go to storage in the
order they came, and its response is packed when they are stored. While it has to load a topic, what
comes behind it waits (`hold`).

Invariant: every request is answered once, or the connection ends; after `closed` nothing is packed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.broker import Broker
from core.link.connection import PAUSE_PUBLISHES, PAUSE_RATE, Connection
from wire.kafka.codec.declare import Response
from wire.kafka.session import (
    commits,
    coordinate,
    fetch,
    identify,
    introduce,
    manage,
    produce,
    tools,
    topics,
    whereabouts,
)
from wire.kafka.wire import Asked, KafkaWire

if TYPE_CHECKING:
    from wire.kafka.front import KafkaFront

log = logging.getLogger(__name__)

Handler = Callable[["KafkaSession", Asked], Awaitable[Response | None]]

HANDLERS: Final[Mapping[int, Handler]] = {
    **introduce.HANDLERS,
    **topics.HANDLERS,
    **fetch.HANDLERS,
    **whereabouts.HANDLERS,
    **coordinate.HANDLERS,
    **commits.HANDLERS,
    **tools.HANDLERS,
    **manage.HANDLERS,
    **identify.HANDLERS,
}
"""By the number of the API; each answers later. Produce is not among them."""

WAITING_MAX: Final = 64
"""Requests of one connection under way: at so many it is not read, at half of them it is again."""
STORING_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of one connection, on their way to storage: likewise."""


class KafkaSession:
    """See the module's docstring."""

    __slots__ = ("_held", "_storing_bytes", "connection", "front", "gone", "wire")

    def __init__(self, front: KafkaFront, connection: Connection, wire: KafkaWire) -> None:
        self.front = front
        self.connection = connection
        self.wire = wire
        self.gone = False
        self._storing_bytes = 0
        self._held: deque[Asked] | None = None
        """Requests that wait until a produce before them has its topics; None while none does."""

    @property
    def broker(self) -> Broker:
        return self.front.broker

    # -- requests -----------------------------------------------------------------------------

    def handle(self, asked: Asked) -> None:
        """Act on one request."""
        if self._held is not None:
            self._held.append(asked)
        elif asked.key == produce.KEY:
            produce.on_produce(self, asked)
        else:
            self.broker.spawn(self._answer_later, asked)
        if self.wire.waiting >= WAITING_MAX:
            self.connection.pause(PAUSE_PUBLISHES)

    def hold(self) -> None:
        """What comes from now on waits for `go_on`."""
        self._held = deque()

    def go_on(self) -> None:
        held, self._held = self._held, None
        while held:
            if self._held is not None:
                self._held += held
                return
            self.handle(held.popleft())

    async def _answer_later(self, asked: Asked) -> None:
        try:
            self.answer(asked, await HANDLERS[asked.key](self, asked))
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self.connection.end("this server failed")

    def answer(self, asked: Asked, response: Response | None) -> None:
        """Pack the response, or that there is none."""
        if self.gone:
            return
        self.wire.answer(asked, response)
        self.connection.touch()
        paused = self.connection.paused & PAUSE_PUBLISHES
        if paused and 2 * self.wire.waiting <= WAITING_MAX:
            self.connection.resume(PAUSE_PUBLISHES)

    # -- back-pressure ------------------------------------------------------------------------

    def storing(self, size: int) -> None:
        """So many bytes are on their way to storage; at the limit, read no more."""
        self._storing_bytes += size
        if self._storing_bytes >= STORING_BYTES_MAX:
            self.connection.pause(PAUSE_RATE)

    def stored(self, size: int) -> None:
        self._storing_bytes -= size
        if self.connection.paused & PAUSE_RATE and 2 * self._storing_bytes <= STORING_BYTES_MAX:
            self.connection.resume(PAUSE_RATE)

    # -- life ---------------------------------------------------------------------------------

    def quiet(self) -> None:
        """Kafka's clients are silent for minutes and have no word for asking: they may."""

    def relieved(self) -> None:
        """Nobody sends of his own accord."""

    def closed(self, reason: str) -> None:
        """The connection is gone."""
        del reason
        self.gone = True
        self.wire.close()
