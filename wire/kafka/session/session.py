"""The session of one connection: what keeps the order of its requests, and begins each.

`handlers.py` has the handler of each kind of request. Kafka promises that the requests of a
connection are processed one after the other, and some clients count on it: a request begins when
all before it are answered, as a task of its own. Only a produce need not wait for the produces
before it: it is plain where its topics are loaded, batches go to storage in the order they
came, and its response is packed when they are stored. While it has to load a topic, what comes
behind it waits (`hold_for`). A fetch of what is at hand is plain, too, and answered at once.

Invariants: every request is answered once, or the connection ends; at most one of a connection is
under way that is not a produce; after `closed` nothing is packed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.link.memory.pauses import PAUSE_LATER, PAUSE_PUBLISHES
from magnetar.wire.kafka.api_keys import FETCH, PRODUCE, ApiKey
from magnetar.wire.kafka.codec.declare import Response
from magnetar.wire.kafka.session import rights
from magnetar.wire.kafka.session.context import Caller, RequestContext
from magnetar.wire.kafka.session.pending_requests import Pending
from magnetar.wire.kafka.session.produce import produce, single_batch
from magnetar.wire.kafka.wire import KafkaRequest, KafkaWire, RepeatedProduce

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.handlers import RequestHandlers

log = logging.getLogger(__name__)

Reply = Response | list[bytes] | None
"""A response, the pieces of one that is encoded already, or None for none."""

IDLE_SECONDS: Final = 600.0
"""Clients close connections that they have not used for nine minutes themselves."""
WAITING_MAX: Final = 64
"""Requests of one connection: at so many it is not read, at half of them it is again."""
WEIGHED_BYTES_MIN: Final = 64 * 1024
"""Larger requests count until they are answered, which may be long: see `_weigh`."""
LATER_BYTES_MAX: Final = 128 * 1024
"""Of the produces of one connection that wait for one that takes its time: at so many it is not
read, at half of them it is again. They count as on their way to storage, where too much holds up
everybody who writes.
"""
WORDS_WEIGHT: Final = 8
"""So many times its size a request takes that was taken apart: more than that takes malice."""
ASKED_BYTES: Final = 1024
"""And so many more, however small it is."""
WEIGHTS: Final[Mapping[int, int]] = {
    ApiKey.FETCH: 2,
    ApiKey.JOIN_GROUP: 1,
    ApiKey.SYNC_GROUP: 1,
}
"""Of those that wait for long: Fetch names few topics with many partitions; of JoinGroup and
SyncGroup most of what is large stays as it is."""


class KafkaSession:
    """See the module's docstring."""

    __slots__ = (
        "_acting",
        "_busy",
        "_busy_at",
        "_handlers",
        "_later",
        "_produce",
        "_weight",
        "caller",
        "connection",
        "wire",
    )

    def __init__(self, handlers: RequestHandlers, caller: Caller, wire: KafkaWire) -> None:
        self._handlers = handlers
        self.caller = caller
        self.connection = caller.connection
        self.wire = wire
        self._produce = handlers.produce(caller, self)
        self._weight = [0, 0]
        """Of the large requests that are not answered, and of produces that wait: see `_weigh`."""
        self._busy = False
        """A task answers a request, or loads the topics of a produce: what comes later waits."""
        self._busy_at = -1
        """The API of the request that was begun last: of the one that a task answers, if any is."""
        self._later = Pending()
        self._acting = False

    # -- requests -----------------------------------------------------------------------------

    def handle(self, request: KafkaRequest) -> None:
        """Act on one request, or do so later."""
        if self.wire.waiting >= WAITING_MAX:
            self.connection.pause(PAUSE_PUBLISHES)  # what was received with this one still comes
        later = bool(self._later.requests) or not self._may_begin(request)
        counts = later or (request.size >= WEIGHED_BYTES_MIN and request.key != PRODUCE)
        if counts and not self.weigh(request):
            return
        if later:
            self._later.add(request)
        else:
            self._begin(request)

    def weigh(self, request: KafkaRequest) -> bool:
        """Count a request that is not done with at once, until it is answered. False: there is no
        memory for it, and its connection ends, since a pause would not make it hold less.

        A produce that waits for our work on produces before it counts as on its way to storage,
        which it soon is. Behind what may wait for long, a fetch for one, it is like any other.
        """
        if request.key == PRODUCE and self._working_at_produces:
            request.weight, request.storing = request.size, True
            self.connection.storing(request.weight)
        else:
            factor = 1 if request.key == PRODUCE else WEIGHTS.get(request.key, WORDS_WEIGHT)
            weight = request.size * factor + ASKED_BYTES
            if not self.connection.has_room_for(weight):
                text = f"a request of {request.size} bytes, for which there is no memory"
                self.connection.complain("requests too large", f"closed: {text}")
                self.connection.end(text)
                return False
            request.weight = weight
        self._weight[request.storing] += request.weight
        if self._weight[True] >= LATER_BYTES_MAX:
            self.connection.pause(PAUSE_LATER)
        return True

    @property
    def _working_at_produces(self) -> bool:
        """All that is under way, and waits, are produces."""
        at_one = self._busy and self._busy_at == PRODUCE
        return (at_one or not self._busy) and self._later.only_produces

    def _relieve(self, request: KafkaRequest) -> None:
        """It is answered."""
        self._weight[request.storing] -= request.weight
        if request.storing:  # it may have been refused
            self.connection.stored(request.weight, proves=False)
        else:
            self.connection.has_answered(request.weight)
        if self.connection.paused & PAUSE_LATER and 2 * self._weight[True] <= LATER_BYTES_MAX:
            self.connection.resume(PAUSE_LATER)

    def _may_begin(self, request: KafkaRequest) -> bool:
        return not self._busy and (request.key == PRODUCE or self.wire.is_first(request))

    def _begin(self, request: KafkaRequest) -> None:
        self._busy_at = request.key
        handlers, caller = self._handlers, self.caller
        try:
            if isinstance(request, RepeatedProduce):
                named = request.shape.resource
                rights.check_named(handlers.access, caller.principal, request.key, named)
                if single_batch.begin(self._produce, request):
                    return
            else:
                rights.check(handlers.access, caller.principal, request.key, request.request)
        except Unauthorized as error:
            self.connection.end(str(error))
            return
        if request.key == PRODUCE:
            produce.on_produce(self._produce, request)
        elif request.key == FETCH and (response := self._handlers.fetch.at_once(caller, request)):
            self.answer(request, response)
        elif request.key in handlers.by_key:
            self.hold_for(self._answer_with(request, self._handled(request)))
        else:
            self.connection.complain("requests not served", f"closed: API {request.key}")
            self.connection.end(f"API {request.key} is not served")

    def _handled(self, request: KafkaRequest) -> Awaitable[Reply]:
        """From here on its handler alone has the request, and lets it go when it likes."""
        context = RequestContext(
            request.key, request.version, request.correlation_id, request.client_id, self.caller
        )
        reply = self._handlers.by_key[request.key](context, request.request)
        request.let_go()
        return reply

    def hold_for(self, work: Awaitable[None]) -> None:
        """What comes from now on waits until that is done."""
        self._busy = True
        self._handlers.spawn(self._done, work)

    async def _done(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self._give_up()
        finally:
            self._busy = False
            self._act_on_later()

    async def _answer_with(self, request: KafkaRequest, response: Awaitable[Reply]) -> None:
        made = await response
        self.connection.begin()
        try:
            self.answer(request, made)
        finally:
            self.connection.settle()

    def _act_on_later(self) -> None:
        if self._acting:
            return  # what is begun here may be answered at once
        self._acting = True
        try:
            while self._later.requests and self._may_begin(self._later.requests[0]):
                self._begin(self._later.take())
                if self.connection.ending is not None:
                    self._later.clear()
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self._give_up()
        finally:
            self._acting = False

    def _give_up(self) -> None:
        """A mistake of ours costs one connection."""
        self._later.clear()
        self.connection.end("this server failed")

    def answer(self, request: KafkaRequest, response: Reply) -> None:
        """Pack the response, or that there is none."""
        if not self.caller.gone:
            if request.weight:
                self._relieve(request)
            self.wire.answer(request, response)
            self._answered()

    def answer_packed(self, request: KafkaRequest, packed: bytes) -> None:
        """Likewise, a response that is packed."""
        if not self.caller.gone:
            if request.weight:
                self._relieve(request)
            self.wire.answer_packed(request, [packed])
            self._answered()

    def _answered(self) -> None:
        self.connection.touch()
        self._read_on()
        if self._later.requests:
            self._act_on_later()

    # -- back-pressure ------------------------------------------------------------------------

    def _read_on(self) -> None:
        """If half of the requests that there may be are answered."""
        if self.connection.paused & PAUSE_PUBLISHES and 2 * self.wire.waiting <= WAITING_MAX:
            self.connection.resume(PAUSE_PUBLISHES)

    # -- life ---------------------------------------------------------------------------------

    @property
    def silence_seconds_allowed(self) -> float:
        """Clients have no word for asking whether we live. Who waits for us may do so for ever."""
        return math.inf if self.wire.waiting else IDLE_SECONDS

    def quiet(self) -> None:
        """There is nothing to ask: the next look ends the connection."""

    def relieved(self) -> None:
        """The client has taken what was sent."""
        self.caller.relieved()

    def closed(self, reason: str) -> None:
        """The connection is gone."""
        del reason
        self.caller.closed()
        self.wire.close()
        self.wire.let_go()
        self._later.clear()
        self.connection.has_answered(self._weight[False])
        self.connection.stored(self._weight[True])
