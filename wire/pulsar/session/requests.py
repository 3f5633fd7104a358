"""The queue of requests that take time: how many are under way, and which one is next.

A request *waits* in the queue of its connection, then it is *under way* (a task), then it is done.
Requests of one connection begin in their order of arrival, except that those which begin in the
same turn of the loop have no order; they do not wait for each other's end. Connections take turns.

Limits:
- A connection with `REQUESTS_MAX` unfinished requests is not read until half of them are done.
- Requests that were received together with the last of them are queued, too. All count in the
  server's memory (`core/link/memory/inbound.py`). If none is left, the connection ends and its
  requests are dropped, since no answer would make it send fewer. The first `FREE_MAX` small
  requests of each connection do not count.
- `UNDER_WAY_MAX` requests of all connections are under way. Beyond that, each connection may have
  one, so that slow requests do not delay those of other connections for ever.
- `BEGIN_MAX` requests begin in one turn of the loop, which then serves other protocols.
- Some need no task: plain calls begin them, and answer when the metadata calls back. They are under
  way as others are, and begin so only while few are, and none of their connection waits.
- While a connection does not receive its answers, none of its requests begins.

Invariants: a waiting request is dropped when its connection closes; `RequestSchedule` knows every
connection whose next request may begin; a held connection has a request under way; while a request
has begun, or may begin, a task looks again in the next turn of the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from sys import getsizeof
from typing import Any, Final, NamedTuple

import trio
from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.lazy_queue import LazyQueue
from magnetar.core.link.memory.pauses import PAUSE_REQUESTS
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.client import PulsarClient

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 200
"""Unfinished requests of one connection. Clients send a few at a time, or one for each topic."""
FREE_MAX: Final = 16
"""Small requests of one connection that are always accepted, even if memory is short."""
UNDER_WAY_MAX: Final = 1_000
"""Requests of all connections that are under way; each has a task of about 10 KiB."""
BEGIN_MAX: Final = 32
"""Requests that begin in one turn of the loop; a lookup takes 50 us."""
AT_ONCE_MAX: Final = 32
"""Requests of all connections that are under way, with which another one may begin without a task:
as many are carried out in one sweep."""
FREE_BYTES_MAX: Final = 8 * 1024
"""The size of a small request: it has texts of a kilobyte or two."""
EVENT_BYTES: Final = 512
"""The memory of an event without its texts."""
NUMBER_BYTES: Final = 32

RequestHandler = Callable[[Any], Awaitable[None]]


class WaitingRequest(NamedTuple):
    """A request that waits for its turn."""

    answer: RequestHandler
    event: events.Event
    size: int
    """Its bytes in the server's memory."""


def size_of(event: events.Event) -> int:
    """The approximate memory of an event."""
    return EVENT_BYTES + _size_of_fields(event)


def _size_of_fields(value: Struct) -> int:
    return sum(_size_of_value(getattr(value, name)) for name in value.__struct_fields__)


def _size_of_value(value: object) -> int:
    """The memory of a value whose length the peer chooses, and of its items."""
    if isinstance(value, str | bytes):
        return getsizeof(value)
    if isinstance(value, Mapping):
        return sum(getsizeof(key) + getsizeof(each) for key, each in value.items())
    if isinstance(value, tuple):
        return getsizeof(value) + sum(_size_of_value(each) or NUMBER_BYTES for each in value)
    return _size_of_fields(value) if isinstance(value, Struct) else 0


class RequestSchedule:
    """Chooses the connection that begins its next request; shared by all connections of a front."""

    __slots__ = ("_held", "_left", "_looking", "_ready", "_spawn", "under_way")

    def __init__(self, spawn: Callable[..., None]) -> None:
        self._spawn = spawn
        self._ready: dict[RequestQueue, None] = {}
        """Connections with a request to begin, in the order of their turns."""
        self._held: dict[RequestQueue, None] = {}
        """Ready connections that wait because `UNDER_WAY_MAX` is reached."""
        self._left = BEGIN_MAX
        """The number of requests that may still begin in this turn of the loop."""
        self._looking = False
        self.under_way = 0
        """The number of requests under way."""

    def ask(self, requests: RequestQueue) -> None:
        """Schedule a connection with a waiting request."""
        if requests not in self._held:
            self._ready[requests] = None
        self._begin()

    def forget(self, requests: RequestQueue) -> None:
        """Remove a connection without waiting requests."""
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
                continue  # it is scheduled again when it may
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
        """Begin requests in each turn of the loop, as long as there are any."""
        while self._left < BEGIN_MAX:
            await trio.lowlevel.checkpoint()
            self._left = BEGIN_MAX
            self._begin()
        self._looking = False


class RequestQueue:
    """The requests of one connection. See the module's docstring."""

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
        self._later = LazyQueue[WaitingRequest]()
        self.under_way = 0
        self.one_list = trio.Lock()
        """Held while a request is answered with a long list: one at a time."""

    def __len__(self) -> int:
        return len(self._later) + self.under_way

    def add(self, answer: RequestHandler, event: events.Event) -> None:
        """Begin a request, or queue it."""
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
        """End the connection: there is no memory for its request."""
        connection = self._client.connection
        text = f"no memory for a request of {size} bytes more, {len(self)} are not answered"
        connection.complain("too many requests", f"closed: {text}")
        connection.end(text)
        self.drop()

    @property
    def may_begin(self) -> bool:
        """Whether the next request may begin; `relieved` asks again if output was the obstacle."""
        return bool(self._later) and not self._client.connection.takes_too_little

    def begin(self) -> None:
        """Begin the next request."""
        self.under_way += 1
        self._spawn(self._answer, self._later.popleft())

    async def _answer(self, request: WaitingRequest) -> None:
        client = self._client
        try:
            if not client.gone:
                await self._handle(request)
        finally:
            self._is_done(request.size)

    def _is_done(self, size: int) -> None:
        client = self._client
        self.under_way -= 1
        client.connection.has_answered(size)
        if client.connection.paused & PAUSE_REQUESTS:
            client.reassure(self._clock.monotonic())
            if 2 * len(self) <= REQUESTS_MAX:
                client.connection.resume(PAUSE_REQUESTS)
        self._schedule.done(self)

    # -- requests that need no task -----------------------------------------------------------

    def may_begin_at_once(self, event: events.Event) -> bool:
        """Whether a request may begin as a plain call: it is small, few are under way, and none of
        this connection waits.
        """
        few = self.under_way < FREE_MAX and self._schedule.under_way < AT_ONCE_MAX
        if not few or self._later or self._client.connection.takes_too_little:
            return False
        return size_of(event) <= FREE_BYTES_MAX

    def begin_at_once(self, begin: Callable[[], bool]) -> bool:
        """Begin a request as a plain call, which `answer` follows; False if it has not begun."""
        self.under_way += 1
        self._schedule.under_way += 1
        begun = False
        try:
            begun = begin()
        finally:
            if not begun:
                self.under_way -= 1
                self._schedule.under_way -= 1
        return begun

    def answer(
        self, event: events.Event, error: BrokerError | None, reply: Callable[[], bytes]
    ) -> None:
        """Answer it, and count it no more."""
        try:
            if error is None:
                self._client.reply(reply())
            else:
                self._client.refuse(event, error)
        finally:
            self._is_done(0)

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
        """The peer has received answers."""
        if self._later:
            self._schedule.ask(self)

    def drop(self) -> None:
        """Drop all waiting requests: the connection closes."""
        self._client.connection.has_answered(sum(request.size for request in self._later))
        self._later.clear()
        self._schedule.forget(self)
