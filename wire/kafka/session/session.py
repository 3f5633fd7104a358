"""The session of one connection: starts its requests, and keeps their order.

`handlers.py` has the handler of each kind of request. Kafka processes the requests of a connection
one after the other, and clients rely on it (`SocketServer.scala` of 4.3 mutes the channel of a
request until its response is sent). So a request starts, as a task of its own, after all earlier
requests are answered. A produce does not wait for earlier produces: clients have up to five under
way (`max.in.flight.requests.per.connection`). If its topics are loaded, it is a plain call; batches
go to storage in the order of arrival, and the response is packed after they are stored. While a
produce loads a topic, later requests wait (`hold_for`). A fetch of cached entries is a plain call
as well.

Invariants: every request is answered once, or the connection ends; at most one request of a
connection that is no produce is under way; after `closed` nothing is packed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from magnetar.core.link.memory.pauses import PAUSE_LATER, PAUSE_PUBLISHES
from magnetar.core.link.wire import Piece
from magnetar.wire.kafka.api_keys import FETCH, PRODUCE, ApiKey
from magnetar.wire.kafka.codec.declare import Message, Response
from magnetar.wire.kafka.session import refusals, sasl
from magnetar.wire.kafka.session.charges import RequestCharges
from magnetar.wire.kafka.session.context import Caller, RequestContext
from magnetar.wire.kafka.session.pending_requests import Pending
from magnetar.wire.kafka.session.produce import produce, single_batch
from magnetar.wire.kafka.session.splitting import Split
from magnetar.wire.kafka.wire import FRAME_BYTES_MAX, KafkaRequest, KafkaWire, RepeatedProduce

if TYPE_CHECKING:
    from magnetar.core.security.conversation import Conversation
    from magnetar.wire.kafka.session.handlers import RequestHandlers

log = logging.getLogger(__name__)

Reply = Response | list[bytes] | list[Piece] | None
"""A response, the pieces of one that is encoded already, or None for none."""

IDLE_SECONDS: Final = 600.0
"""`connections.max.idle.ms` of Kafka's broker. The clients' default of the same name is nine
minutes, so normally the client closes first.
"""
WAITING_MAX: Final = 64
"""Unanswered requests of one connection. At this number reading pauses, at half of it reading
resumes. Kafka's broker has a limit of all connections instead (`queued.max.requests`).
"""
WEIGHED_BYTES_MIN: Final = 64 * 1024
"""Requests of this size and more count as memory until they are answered: see `weigh`."""
LATER_BYTES_MAX: Final = 128 * 1024
"""Bytes of one connection's produces that wait for an earlier, slow produce. At this number reading
pauses, at half of it reading resumes. These bytes count as on their way to storage, and too many
there delay every writer.
"""
DECODED_WEIGHT: Final = 8
"""Memory of a decoded request, as a multiple of its size. Only a crafted request needs more."""
REQUEST_BYTES: Final = 1024
"""Memory that every request needs besides its bytes."""
WEIGHTS: Final[Mapping[int, int]] = {
    ApiKey.FETCH: 2,
    ApiKey.JOIN_GROUP: 1,
    ApiKey.SYNC_GROUP: 1,
    ApiKey.SASL_AUTHENTICATE: 2,
}
"""The multiple for requests that wait for long. Fetch names few topics with many partitions. The
large fields of JoinGroup, SyncGroup and SaslAuthenticate are bytes, which decoding leaves as they
are.
"""


class KafkaSession:
    """See the module's docstring."""

    __slots__ = (
        "_acting",
        "_busy",
        "_busy_at",
        "_charges",
        "_guarded",
        "_handlers",
        "_later",
        "_produce",
        "_throttle",
        "_usage",
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
        self._throttle = self._produce.throttle
        self._usage = handlers.quotas
        self._charges = RequestCharges(
            handlers.quotas, caller, self._produce.throttle, handlers.clock
        )
        self._guarded = caller.guarded
        self._weight = [0, 0]
        """Weight of the large unanswered requests, and of the waiting produces: see `weigh`."""
        self._busy = False
        """A task answers a request or loads the topics of a produce; later requests wait."""
        self._busy_at = -1
        """The API key of the request that was started last."""
        self._later = Pending()
        self._acting = False

    # -- requests -----------------------------------------------------------------------------

    def handle(self, request: KafkaRequest) -> None:
        """Start a request, or queue it behind those that are under way."""
        if self.wire.waiting >= WAITING_MAX:
            self.connection.pause(PAUSE_PUBLISHES)  # requests of the same read still follow
        later = bool(self._later.requests) or not self._may_begin(request)
        counts = later or (request.size >= WEIGHED_BYTES_MIN and request.key != PRODUCE)
        if self._guarded and not self.caller.admitted:
            counts = True
            self.connection.introduced = False  # by authentication, or it has little time
        if counts and not self.weigh(request):
            return
        if later:
            self._later.add(request)
        elif self._usage.any:
            self._begin_charged(request)
        else:
            self._begin(request)

    def weigh(self, request: KafkaRequest) -> bool:
        """Count the memory of a request until it is answered. If there is no memory for it, end the
        connection, since a pause would free nothing, and return False. Before authentication every
        request counts, and those who have stored something keep a part for themselves.

        A produce that waits for earlier produces only counts as on its way to storage, where it
        soon is. A produce behind a request that may wait for long, such as Fetch, counts like any
        other request.
        """
        if request.key == PRODUCE and self._working_at_produces:
            request.weight, request.storing = request.size, True
            self.connection.storing(request.weight)
        else:
            factor = 1 if request.key == PRODUCE else WEIGHTS.get(request.key, DECODED_WEIGHT)
            weight = request.size * factor + REQUEST_BYTES
            takes = self.connection.has_room_for
            if not self.caller.admitted:
                takes = self.connection.has_room_to_wait
            if not takes(weight):
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
        """Whether the request under way and all waiting requests are produces."""
        at_one = self._busy and self._busy_at == PRODUCE
        return (at_one or not self._busy) and self._later.only_produces

    def _relieve(self, request: KafkaRequest) -> None:
        """Free the memory of an answered request."""
        self._weight[request.storing] -= request.weight
        if request.storing:  # no proof of progress: it may have been refused
            self.connection.stored(request.weight, proves=False)
        else:
            self.connection.has_answered(request.weight)
        if self.connection.paused & PAUSE_LATER and 2 * self._weight[True] <= LATER_BYTES_MAX:
            self.connection.resume(PAUSE_LATER)

    def _may_begin(self, request: KafkaRequest) -> bool:
        if self._busy or self._throttle.holds:
            return False
        return request.key == PRODUCE or self.wire.is_first(request)

    def _begin_charged(self, request: KafkaRequest) -> None:
        self._charges.begin(request)
        self._begin(request)
        self._charges.end()

    def _begin(self, request: KafkaRequest) -> None:
        self._busy_at = request.key
        handlers, caller = self._handlers, self.caller
        if self._guarded and not caller.in_turn and self._is_out_of_turn(request):
            return
        if isinstance(request, RepeatedProduce) and single_batch.begin(self._produce, request):
            return
        if request.key == PRODUCE:
            produce.on_produce(self._produce, request)
        elif self._guarded and handlers.names_unknown(request):
            self.hold_for(self._named_first(request))
        elif self._guarded and (split := handlers.split(caller, request)):
            self.hold_for(self._answer_with(request, self._rest(request, split)))
        elif request.key == FETCH and (response := handlers.fetch.at_once(caller, request)):
            self.answer(request, response)
        elif request.key in handlers.by_key:
            self.hold_for(self._answer_with(request, self._handled(request)))
        else:
            self.connection.complain("requests not served", f"closed: API {request.key}")
            self.connection.end(f"API {request.key} is not served")

    def _is_out_of_turn(self, request: KafkaRequest) -> bool:
        """Whether the client has to be known, at first or again, before that request. It waits for
        the proof by certificate; without one the connection ends.
        """
        caller, key = self.caller, request.key
        if key not in sasl.HELLO and (proof := caller.certificate_proof()) is not None:
            self._later.put_back(request)
            self.hold_for(self._known_by_certificate(proof))
        elif not caller.admitted and key not in sasl.HELLO:
            self.connection.end(f"API {key} before authentication")
        elif caller.lapsed and key not in sasl.PROVES:
            self.connection.end("its authentication has expired")
        else:
            caller.in_turn = key not in sasl.HELLO and not caller.lapsed
            return False
        return True

    async def _known_by_certificate(self, proof: Conversation) -> None:
        refusal = await sasl.prove_by_certificate(self.caller, proof)
        if refusal:
            self._later.clear()
            self.connection.end(f"authentication failed: {refusal}")
        else:
            self.wire.frame_bytes_max = FRAME_BYTES_MAX

    async def _named_first(self, request: KafkaRequest) -> None:
        """Look up topics that the request names by id, before it is split."""
        await self._handlers.look_up_ids(request)
        split = self._handlers.split(self.caller, request)
        await self._answer_with(request, self._rest(request, split))

    def _rest(self, request: KafkaRequest, split: Split | None) -> Awaitable[Reply]:
        """Start what is allowed of a request; None if everything is."""
        if split is None:
            return self._handled(request)
        if split.request is None:
            return _ready(split.response)
        request.replace(split.request)
        return self._merged(request.key, self._handled(request, split.refused), split.refused)

    async def _merged(self, key: int, reply: Awaitable[Reply], refused: Sequence[Message]) -> Reply:
        made = await reply
        if isinstance(made, Response):  # a list that is encoded already has them (`long_list`)
            refusals.add(key, made, refused)
        return made

    def _handled(self, request: KafkaRequest, refused: Sequence[Message] = ()) -> Awaitable[Reply]:
        """Call the handler, and drop our reference: the handler alone decides how long it lives."""
        context = RequestContext(
            request.key,
            request.version,
            request.correlation_id,
            request.client_id,
            self.caller,
            refused,
            self._charges.mutations(request) if self._usage.any else None,
        )
        reply = self._handlers.by_key[request.key](context, request.request)
        request.release()
        return reply

    def hold_for(self, work: Awaitable[None]) -> None:
        """Run work as a task; later requests wait until it is done."""
        self._busy = True
        if self._busy_at == PRODUCE and self._usage.any:
            work = self._charges.timed(PRODUCE, self._charges.client_id, work)
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
        if self._usage.any:
            made = await self._charges.timed(request.key, request.client_id, response)
        else:
            made = await response
        self.connection.begin()
        try:
            if request.key in sasl.PROVES:
                self._proved(made)
            self.answer(request, made)
        finally:
            self.connection.settle()

    def _proved(self, response: Reply) -> None:
        """A step of an authentication is about to be answered."""
        caller, wire = self.caller, self.wire
        wire.reads_tokens = caller.says_tokens
        if caller.admitted:
            wire.frame_bytes_max = FRAME_BYTES_MAX
            self.connection.introduced = True
        if why := sasl.ends(response, admitted=caller.admitted):
            self._later.clear()
            self.connection.end(why)

    def _act_on_later(self) -> None:
        if self._acting:
            return  # a request that starts here may be answered before `_begin` returns
        self._acting = True
        try:
            while self._later.requests and self._may_begin(self._later.requests[0]):
                request = self._later.take()
                if self._usage.any:
                    self._begin_charged(request)
                else:
                    self._begin(request)
                if self.connection.ending is not None:
                    self._later.clear()
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self._give_up()
        finally:
            self._acting = False

    def _give_up(self) -> None:
        """End the connection after a defect of this server; other connections go on."""
        self._later.clear()
        self.connection.end("this server failed")

    def answer(self, request: KafkaRequest, response: Reply) -> None:
        """Pack the response. None is for a produce with acks=0, which has no response."""
        if not self.caller.gone:
            if request.weight:
                self._relieve(request)
            if isinstance(response, Response):
                if self._usage.any:
                    response = self._charges.answered(request, response)
                if self._throttle.holds:
                    self._charges.told(response)
            self.wire.answer(request, response)
            self._answered()

    def answer_packed(self, request: KafkaRequest, packed: bytes) -> None:
        """Send a response that is encoded already."""
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

    def go_on(self) -> None:
        """The connection is no longer held by a quota: start what was received meanwhile."""
        if self._later.requests and not self.caller.gone:
            self.connection.begin()
            self._act_on_later()
            self.connection.settle()

    def _read_on(self) -> None:
        """Resume reading after the number of unanswered requests has halved."""
        if self.connection.paused & PAUSE_PUBLISHES and 2 * self.wire.waiting <= WAITING_MAX:
            self.connection.resume(PAUSE_PUBLISHES)

    # -- life ---------------------------------------------------------------------------------

    @property
    def silence_seconds_allowed(self) -> float:
        """Kafka has no ping. A connection with an unanswered request may be silent without limit: a
        JoinGroup waits up to the rebalance timeout, which the client chooses (KIP-62).
        """
        return math.inf if self.wire.waiting else IDLE_SECONDS

    def quiet(self) -> None:
        """Kafka has no ping to send: the next check ends the connection."""

    def relieved(self) -> None:
        """The client has received earlier responses: there is room for more."""
        self.caller.relieved()

    def closed(self, reason: str) -> None:
        """The connection is gone."""
        del reason
        self.caller.closed()
        self._produce.closed()
        self.wire.close()
        self.wire.release()
        self._later.clear()
        self.connection.has_answered(self._weight[False])
        self.connection.stored(self._weight[True])


async def _ready(response: Response | None) -> Reply:
    return response
