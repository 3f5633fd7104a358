"""The session of one connection: who handles which request, and what keeps their order.

A handler is a function of (session, request) that returns the response. Kafka promises that the
requests of a connection are processed one after the other, and some clients count on it: a request
begins when all before it are answered, as a task of its own. Only a produce need not wait for the
produces before it: it is plain where its topics are loaded, batches go to storage in the order they
came, and its response is packed when they are stored. While it has to load a topic, what comes
behind it waits (`hold_for`). A fetch of what is at hand is plain, too, and answered at once.

Invariants: every request is answered once, or the connection ends; at most one of a connection is
under way that is not a produce; after `closed` nothing is packed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from magnetar.core.broker.access import ANYBODY, Conversation
from magnetar.core.broker.publish_throttle import PublishThrottle
from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.link.connection import Connection
from magnetar.core.link.memory.pauses import PAUSE_LATER, PAUSE_PUBLISHES
from magnetar.wire.kafka.api_keys import FETCH, PRODUCE, ApiKey
from magnetar.wire.kafka.codec.declare import Response
from magnetar.wire.kafka.partition.inspectors import Account
from magnetar.wire.kafka.session import rights, sasl, versions
from magnetar.wire.kafka.session.configs import acls, configs
from magnetar.wire.kafka.session.fetch import delete_records, fetch, list_offsets
from magnetar.wire.kafka.session.fetch.wakeup import Wakeup
from magnetar.wire.kafka.session.groups import classic, consumer, group_tools, offsets
from magnetar.wire.kafka.session.pending import Pending
from magnetar.wire.kafka.session.produce import produce, single_batch
from magnetar.wire.kafka.session.topics import log_dirs, metadata, quorum, topic_changes
from magnetar.wire.kafka.session.transactions import promises, transaction_tools, transactions
from magnetar.wire.kafka.wire import KafkaRequest, KafkaWire, RepeatedProduce

if TYPE_CHECKING:
    from magnetar.wire.kafka.addresses import Endpoint
    from magnetar.wire.kafka.front import KafkaFront

log = logging.getLogger(__name__)

Told = Response | list[bytes] | None
"""A response, or the pieces of one that is encoded already."""
Handler = Callable[["KafkaSession", KafkaRequest], Awaitable[Told]]

HANDLERS: Final[Mapping[int, Handler]] = {
    **versions.HANDLERS,
    **metadata.HANDLERS,
    **fetch.HANDLERS,
    **list_offsets.HANDLERS,
    **delete_records.HANDLERS,
    **log_dirs.HANDLERS,
    **classic.HANDLERS,
    **offsets.HANDLERS,
    **consumer.HANDLERS,
    **group_tools.HANDLERS,
    **topic_changes.HANDLERS,
    **configs.HANDLERS,
    **transactions.HANDLERS,
    **promises.HANDLERS,
    **transaction_tools.HANDLERS,
    **acls.HANDLERS,
    **quorum.HANDLERS,
    **sasl.HANDLERS,
}
"""By the kind of request; each answers later. Produce is not among them.

Most are called now and run later. One that is plain, and returns what is to be awaited, does
something at once: so it can see to it that two of a kind are done in their order, whichever
connections they came from.
"""

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
        "_later",
        "_told_of_end",
        "_weight",
        "address",
        "broker",
        "connection",
        "debts",
        "front",
        "gone",
        "inspected",
        "listener",
        "proof",
        "who",
        "wire",
    )

    def __init__(
        self,
        front: KafkaFront,
        connection: Connection,
        wire: KafkaWire,
        address: Endpoint,
        listener: str,
    ) -> None:
        self.front = front
        self.broker = front.broker
        self.connection = connection
        self.wire = wire
        self.address = address
        """What clients of this listener are told of where we are."""
        self.listener = listener
        self.inspected = Account()
        self.gone = False
        self.who = ANYBODY
        self.proof: Conversation | None = None
        """Who it is, in the course of being proved."""
        self.debts = PublishThrottle(
            front.broker.clock, front.broker.spawn, connection, self._still_here
        )
        self._weight = [0, 0]
        """Of the large requests that are not answered, and of produces that wait: see `_weigh`."""
        self._told_of_end: set[Wakeup] = set()
        self._busy = False
        """A task answers a request, or loads the topics of a produce: what comes later waits."""
        self._busy_at = -1
        """The API of the request that was begun last: of the one that a task answers, if any is."""
        self._later = Pending()
        self._acting = False

    # -- requests -----------------------------------------------------------------------------

    def handle(self, asked: KafkaRequest) -> None:
        """Act on one request, or do so later."""
        if self.wire.waiting >= WAITING_MAX:
            self.connection.pause(PAUSE_PUBLISHES)  # what was received with this one still comes
        later = bool(self._later.requests) or not self._may_begin(asked)
        counts = later or (asked.size >= WEIGHED_BYTES_MIN and asked.key != PRODUCE)
        if counts and not self.weigh(asked):
            return
        if later:
            self._later.add(asked)
        else:
            self._begin(asked)

    def weigh(self, asked: KafkaRequest) -> bool:
        """Count a request that is not done with at once, until it is answered. False: there is no
        memory for it, and its connection ends, since nobody would wait less for being asked to.

        A produce that waits for our work on produces before it counts as on its way to storage,
        which it soon is. Behind what may wait for long, a fetch for one, it is like any other.
        """
        if asked.key == PRODUCE and self._working_at_produces:
            asked.weight, asked.storing = asked.size, True
            self.connection.storing(asked.weight)
        else:
            factor = 1 if asked.key == PRODUCE else WEIGHTS.get(asked.key, WORDS_WEIGHT)
            weight = asked.size * factor + ASKED_BYTES
            if not self.connection.has_room_for(weight):
                text = f"a request of {asked.size} bytes, for which there is no memory"
                self.connection.complain("requests too large", f"closed: {text}")
                self.connection.end(text)
                return False
            asked.weight = weight
        self._weight[asked.storing] += asked.weight
        if self._weight[True] >= LATER_BYTES_MAX:
            self.connection.pause(PAUSE_LATER)
        return True

    @property
    def _working_at_produces(self) -> bool:
        """All that is under way, and waits, are produces."""
        at_one = self._busy and self._busy_at == PRODUCE
        return (at_one or not self._busy) and self._later.only_produces

    def _relieve(self, asked: KafkaRequest) -> None:
        """It is answered."""
        self._weight[asked.storing] -= asked.weight
        if asked.storing:  # it may have been refused
            self.connection.stored(asked.weight, proves=False)
        else:
            self.connection.has_answered(asked.weight)
        if self.connection.paused & PAUSE_LATER and 2 * self._weight[True] <= LATER_BYTES_MAX:
            self.connection.resume(PAUSE_LATER)

    def _may_begin(self, asked: KafkaRequest) -> bool:
        return not self._busy and (asked.key == PRODUCE or self.wire.is_first(asked))

    def _begin(self, asked: KafkaRequest) -> None:
        self._busy_at = asked.key
        try:
            if isinstance(asked, RepeatedProduce):
                rights.check_named(self.broker.access, self.who, asked.key, asked.shape.asked_of)
                if single_batch.begin(self, asked):
                    return
            else:
                rights.check(self.broker.access, self.who, asked.key, asked.request)
        except Unauthorized as error:
            self.connection.end(str(error))
            return
        if asked.key == FETCH and (response := fetch.at_once(self, asked)) is not None:
            self.answer(asked, response)
            return
        if asked.key == PRODUCE:
            produce.on_produce(self, asked)
        elif asked.key in HANDLERS:
            self.hold_for(self._answer_with(asked, HANDLERS[asked.key](self, asked)))
        else:
            self.connection.complain("requests not served", f"closed: API {asked.key}")
            self.connection.end(f"API {asked.key} is not served")

    def hold_for(self, work: Awaitable[None]) -> None:
        """What comes from now on waits until that is done."""
        self._busy = True
        self.broker.spawn(self._done, work)

    async def _done(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:
            log.exception("%s: closed, this server failed", self.connection.peer)
            self._give_up()
        finally:
            self._busy = False
            self._act_on_later()

    async def _answer_with(self, asked: KafkaRequest, response: Awaitable[Told]) -> None:
        made = await response
        self.connection.begin()
        try:
            self.answer(asked, made)
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

    def answer(self, asked: KafkaRequest, response: Told) -> None:
        """Pack the response, or that there is none."""
        if not self.gone:
            if asked.weight:
                self._relieve(asked)
            self.wire.answer(asked, response)
            self._answered()

    def answer_packed(self, asked: KafkaRequest, packed: bytes) -> None:
        """Likewise, a response that is packed."""
        if not self.gone:
            if asked.weight:
                self._relieve(asked)
            self.wire.answer_packed(asked, [packed])
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

    def _still_here(self, _now: float) -> bool:
        return not self.gone

    # -- life ---------------------------------------------------------------------------------

    @property
    def silence_seconds_allowed(self) -> float:
        """Clients have no word for asking whether we live. Who waits for us may do so for ever."""
        return math.inf if self.wire.waiting else IDLE_SECONDS

    def quiet(self) -> None:
        """There is nothing to ask: the next look ends the connection."""

    def relieved(self) -> None:
        """The client has taken what was sent: who held back looks again."""
        for news in self._told_of_end:
            news.wake()

    def closed(self, reason: str) -> None:
        """The connection is gone."""
        del reason
        self.gone = True
        self.wire.close()
        self.wire.let_go()
        self._later.clear()
        self.connection.has_answered(self._weight[False])
        self.connection.stored(self._weight[True])
        for news in self._told_of_end:
            news.wake()

    @contextmanager
    def told_of_end(self) -> Iterator[Wakeup]:
        """Somebody who waits, and need not any more when the connection is gone, or has room."""
        news = Wakeup()
        self._told_of_end.add(news)
        try:
            yield news
        finally:
            self._told_of_end.discard(news)
