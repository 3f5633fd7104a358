"""Requests that need time: how many are under way, and which one is next.

A request *waits* in the queue of its connection, then it is *under way* (a task), then it is done.
Requests of one connection begin in the order they came, but for those that begin in the same turn
of the loop, which have no order; they do not wait for each other's end. In all of this the
connections take turns.

Limits:
- A connection with `REQUESTS_MAX` requests that are not done is not read until half of them are.
- What was received with the last of them is taken, too. All count in the server's memory
  (`core/link/memory/inbound.py`). Where there is none left the connection ends, and its requests
  are dropped: no answer would make it send fewer. The first `FREE_MAX`
  requests of each connection need no room, if they are small.
- `UNDER_WAY_MAX` requests of all connections are under way. Beyond that a connection may have one,
  so that requests that take long delay nobody else's for ever.
- `BEGIN_MAX` requests begin in one turn of the loop, which then serves other protocols.
- A connection that does not take its answers gets no more of them: nothing of it begins meanwhile.

Invariants: what waits is dropped when its connection goes, before it does anything;
`RequestSchedule` knows every connection whose next request may begin; a connection that is held has
a request under way; while something has begun, or may, a task looks again in the next turn of the
loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from sys import getsizeof
from typing import Any, Final, NamedTuple

import trio
from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.link.memory.pauses import PAUSE_REQUESTS
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.client import PulsarClient

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 200
"""Of one connection. Clients ask for a few things at a time, or for all their topics at once."""
FREE_MAX: Final = 16
"""Of one connection: a client that asks for little is served whatever others do."""
UNDER_WAY_MAX: Final = 1_000
"""Of all connections; each has a task, which takes 10 KiB or so."""
BEGIN_MAX: Final = 32
"""In one turn of the loop: a lookup takes 50 us."""
FREE_BYTES_MAX: Final = 8 * 1024
"""Of each of those: texts of a kilobyte or two."""
EVENT_BYTES: Final = 512
"""An event without its texts."""
NUMBER_BYTES: Final = 32

RequestHandler = Callable[[Any], Awaitable[None]]


class WaitingRequest(NamedTuple):
    """One that waits."""

    answer: RequestHandler
    event: events.Event
    size: int
    """What it counts in the server's memory."""


def size_of(event: events.Event) -> int:
    """The memory that an event takes, about."""
    return EVENT_BYTES + _size_of_fields(event)


def _size_of_fields(value: Struct) -> int:
    return sum(_size_of_value(getattr(value, name)) for name in value.__struct_fields__)


def _size_of_value(value: object) -> int:
    """Of what a peer may make long, and what is in that."""
    if isinstance(value, str | bytes):
        return getsizeof(value)
    if isinstance(value, Mapping):
        return sum(getsizeof(key) + getsizeof(each) for key, each in value.items())
    if isinstance(value, tuple):
        return getsizeof(value) + sum(_size_of_value(each) or NUMBER_BYTES for each in value)
    return _size_of_fields(value) if isinstance(value, Struct) else 0


class RequestSchedule:
    """Which connection begins its next request. One for all connections of a front."""

    __slots__ = ("_held", "_left", "_looking", "_ready", "_spawn", "under_way")

    def __init__(self, spawn: Callable[..., None]) -> None:
        self._spawn = spawn
        self._ready: dict[RequestQueue, None] = {}
        """Those with a request to begin, in the order of their turns."""
        self._held: dict[RequestQueue, None] = {}
        """Those of them for which too many requests are under way."""
        self._left = BEGIN_MAX
        """So many more begin in this turn of the loop."""
        self._looking = False
        self.under_way = 0
        """Requests of all connections."""

    def ask(self, requests: RequestQueue) -> None:
        """It has a request that waits."""
        if requests not in self._held:
            self._ready[requests] = None
        self._begin()

    def forget(self, requests: RequestQueue) -> None:
        """No request of the connection waits any longer."""
        self._ready.pop(requests, None)
        self._held.pop(requests, None)

    def done(self, requests: RequestQueue) -> None:
        """Count a finished request of the connection."""
        self.under_way -= 1
        if requests in self._held:
            del self._held[requests]
            self._ready[requests] = None
        if self._held and self.under_way < UNDER_WAY_MAX:
            first = next(iter(self._held))
            del self._held[first]
            self._ready[first] = None
        self._begin()

    def _begin(self) -> None:
        while self._left and self._ready:
            requests = next(iter(self._ready))
            del self._ready[requests]
            if not requests.may_begin:
                continue  # it asks again when it may
            if self.under_way >= UNDER_WAY_MAX and requests.under_way:
                self._held[requests] = None
                continue
            self._left -= 1
            self.under_way += 1
            requests.begin()
            self._ready[requests] = None  # behind all others
        if not self._looking and self._left < BEGIN_MAX:
            self._looking = True
            self._spawn(self._look)

    async def _look(self) -> None:
        """In each turn of the loop, as long as there is something to begin."""
        while self._left < BEGIN_MAX:
            await trio.lowlevel.checkpoint()
            self._left = BEGIN_MAX
            self._begin()
        self._looking = False


class RequestQueue:
    """Those of one connection. See the module's docstring."""

    __slots__ = ("_client", "_clock", "_later", "_schedule", "_spawn", "one_list", "under_way")

    def __init__(
        self,
        client: PulsarClient,
        schedule: RequestSchedule,
        spawn: Callable[..., None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._schedule = schedule
        self._spawn = spawn
        self._clock = clock
        self._later: deque[WaitingRequest] = deque()
        self.under_way = 0
        self.one_list = trio.Lock()
        """Held by the one request that is answered with a long list."""

    def __len__(self) -> int:
        return len(self._later) + self.under_way

    def add(self, answer: RequestHandler, event: events.Event) -> None:
        """Have it answered, now or later."""
        connection, size = self._client.connection, size_of(event)
        if not connection.has_room_to_wait(size):
            if len(self) >= FREE_MAX or size > FREE_BYTES_MAX:
                self._refuse(size)
                return
            size = 0
        self._later.append(WaitingRequest(answer, event, size))
        if len(self) >= REQUESTS_MAX:
            connection.pause(PAUSE_REQUESTS)
        self._schedule.ask(self)

    def _refuse(self, size: int) -> None:
        """There is no memory for it."""
        connection = self._client.connection
        text = f"no memory for a request of {size} bytes more, {len(self)} are not answered"
        connection.complain("too many requests", f"closed: {text}")
        connection.end(text)
        self.drop()

    @property
    def may_begin(self) -> bool:
        """Whether the next one may; if not because of its answers, it asks when they are taken."""
        return bool(self._later) and not self._client.connection.takes_too_little

    def begin(self) -> None:
        """The next one is under way."""
        self.under_way += 1
        self._spawn(self._answer, self._later.popleft())

    async def _answer(self, request: WaitingRequest) -> None:
        client = self._client
        try:
            if not client.gone:
                await self._handle(request)
        finally:
            self.under_way -= 1
            client.connection.has_answered(request.size)
            if client.connection.paused & PAUSE_REQUESTS:
                client.reassure(self._clock.monotonic())
                if 2 * len(self) <= REQUESTS_MAX:
                    client.connection.resume(PAUSE_REQUESTS)
            self._schedule.done(self)

    async def _handle(self, request: WaitingRequest) -> None:
        client = self._client
        try:
            await request.answer(request.event)
        except BrokerError as error:
            client.refuse(request.event, error)
        except Exception:
            log.exception("%s: closed, this server failed", client.peer)
            client.connection.end("this server failed")

    def relieved(self) -> None:
        """The peer has taken answers."""
        if self._later:
            self._schedule.ask(self)

    def drop(self) -> None:
        """The connection is gone, or about to."""
        self._client.connection.has_answered(sum(request.size for request in self._later))
        self._later.clear()
        self._schedule.forget(self)
