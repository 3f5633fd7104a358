"""The reads of one connection, in the order in which they can be answered.

What is in memory is answered at once, so many in one turn (`read_turns.py`). For everything else
one task of the connection reads the disk, and ends when nothing waits. Responses need no order: a
client matches them by their ids.

    a fencing read    fences, and is answered when the fence is durable
    a long poll       waits until the LAC has moved on, or its time is over
    any other read    waits while the client does not receive what it asked for before, and while
                      there is no memory for its response (`read_memory.py`)

What the responses are is in `responses.py`.

Invariants: nothing is read for a client that does not receive (`Connection.takes_too_little`), nor
before there is memory for it, for all connections together; reads that wait are bounded, of one
connection and of all; a fencing read is never answered before its fence is durable, whatever the
answer; an error that nobody expected ends the connection of that read, and nothing else: any client
may ask for anything, and the bookie is for all of them.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Final

from magnetar.bookie.requests.errors import refusal, status_of
from magnetar.bookie.requests.notes import Notes
from magnetar.bookie.requests.reads.long_polls import LongPolls
from magnetar.bookie.requests.reads.read_memory import ReadMemory
from magnetar.bookie.requests.reads.read_turns import TURN_READS
from magnetar.bookie.requests.reads.responses import Responses, size_of
from magnetar.bookie.requests.response_timeout import ResponseTimeout
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BookieMessage,
    Read,
    Status,
)
from magnetar.bookie.rpc.wire import BookieWire, Call
from magnetar.bookie.server.ledgers.states import UNKNOWN_LAC
from magnetar.core.kernel.errors import BrokerError, Fenced, Overloaded, Unauthorized
from magnetar.core.link.connection import Connection

log = logging.getLogger(__name__)

BETWEEN_TURNS_MAX: Final = 1000
"""Reads of a connection that wait for its next turn; with more it has that at once, so that none is
refused for this.
"""


class Reads:
    """See the module's docstring."""

    def __init__(
        self, services: BookieServices, connection: Connection, wire: BookieWire, notes: Notes
    ) -> None:
        """`notes` are the connection's, for fences."""
        self._services = services
        self._notes = notes
        self._ledgers = services.ledgers
        self._connection = connection
        self._wire = wire
        self._waiting: deque[tuple[Call, bool]] = deque()
        """Each with whether it may become a long poll still."""
        self._urgent: deque[tuple[Call, bool]] = deque()
        """Those of high priority, which go first: a recovery's, in order, so that what is read
        ahead for one serves the next.
        """
        self._polls = LongPolls(services, self._enqueue)
        self._responses = Responses(services.ledgers, services.limits)
        self._memory = ReadMemory(connection, services.limits, self.go_on)
        self._timeout = ResponseTimeout(services, self._not_received)
        self._reading = False
        """Whether the task runs."""
        self._left = 0
        """The reads that it may answer in this turn."""
        self._turn_at = -math.inf
        """When the sweep of the last turn began."""
        self._has_turn_later = False

    # -- coming -------------------------------------------------------------------------------

    def take(self, call: Call) -> None:
        """Carry out a read of any kind."""
        request: Any = call.request
        if getattr(request, "fence", False):
            self._fence(call)
        elif getattr(request, "previous_lac", None) is not None:
            self._poll(call)
        else:
            self._enqueue(call)

    def _fence(self, call: Call) -> None:
        request: Any = call.request
        if request.master_key is None:
            self._refuse(call, Unauthorized("a fence without a master key"))
            return
        fence = partial(self._ledgers.fence, request.ledger_id, request.master_key)
        self._notes.write(fence, partial(self._fenced, call))

    def _fenced(self, call: Call, error: BrokerError | None) -> None:
        if error is None or isinstance(error, Fenced):  # of a deleted ledger: nothing is to fence
            self._enqueue(call)
        else:
            self._refuse(call, error)

    def _poll(self, call: Call) -> None:
        """Let a read wait for the LAC, unless that has moved on already."""
        request: Any = call.request
        if request.piggyback and request.entry_id != LAST_ENTRY:
            self._reply(call, refusal(request, Status.BAD_REQUEST))
            return
        try:
            lac = self._ledgers.known(request.ledger_id).lac
        except BrokerError as error:
            self._refuse(call, error)
            return
        if lac == UNKNOWN_LAC:
            self._enqueue(call, may_wait=bool(request.timeout_ms))
        elif lac > request.previous_lac or not request.timeout_ms or not self._polls.wait(call):
            self._enqueue(call)

    def _enqueue(self, call: Call, *, may_wait: bool = False) -> None:
        if not self._connection.open or self._connection.ending is not None:
            return
        if self._timeout.is_over:
            self._services.counters.reads_dropped += 1
            return
        if not self._services.places.has_one(self._count):
            self._services.counters.reads_rejected += 1
            self._refuse(call, Overloaded("too many reads wait"))
            return
        self._services.reads.begin(self._connection)
        self._queue_of(call).append((call, may_wait))
        self.go_on()

    def _queue_of(self, call: Call) -> deque[tuple[Call, bool]]:
        request = call.request
        urgent = isinstance(request, Read) and request.high_priority
        return self._urgent if urgent else self._waiting

    @property
    def _count(self) -> int:
        """Those that wait."""
        return len(self._urgent) + len(self._waiting)

    # -- answering ----------------------------------------------------------------------------

    def relieved(self) -> None:
        """The client has received earlier responses."""
        self._timeout.end()
        self._services.places.moves(self)
        self.go_on()

    def _not_received(self) -> None:
        """Its time is over."""
        self._services.counters.reads_dropped += self._forget_waiting()
        if self._services.limits.close_channel_on_response_timeout:
            self._connection.link.drop(self._connection, "it does not receive its responses")

    def go_on(self) -> None:
        """Answer what is in memory, if it is this connection's turn, as far as the client receives
        it and there is room for it, and read the disk.
        """
        if self._has_turn_later and self._count < BETWEEN_TURNS_MAX:
            return
        now = self._connection.link.now
        if now != self._turn_at or self._has_turn_later:
            self._turn_at, self._left = now, TURN_READS
        self._answer()

    def take_turn(self) -> None:
        """Go on: others have had their turn."""
        self._has_turn_later = False
        self._left = TURN_READS
        self._answer()

    def _answer(self) -> None:
        connection = self._connection
        while (queue := self._queue) and not self._reading and not connection.takes_too_little:
            if not self._left:
                if not self._has_turn_later:
                    self._has_turn_later = True
                    self._services.turns.later(self, connection.link)
                return
            self._left -= 1
            call, may_wait = queue[0]
            try:
                response = None if may_wait else self._at_once(call)
            except BrokerError as error:
                response = self._failure(call.request, error)
            except Exception:
                log.exception("%s: closed, this bookie failed to read", connection.peer)
                self.give_up("this bookie failed to read")
                return
            if response is None:
                if not self._memory.waits(call):
                    self._reading = True
                    connection.link.nursery.start_soon(self._read_on)
                return
            self._leave()
            self._reply(call, response)
            self._memory.release()
        if self._queue and not self._reading:
            self._timeout.begin()
            self._services.places.waits(self, self._count)

    def _at_once(self, call: Call) -> BookieMessage | None:
        """The response, if all of it is in memory, and there is room for it."""
        memory = self._memory
        if not memory.is_plentiful:
            if memory.waits(call):
                return None
            size = self._responses.size_at_once(call.request)
            if size is None or not memory.ask(call, size):
                return None
        return self._responses.at_once(call, memory.bytes_max(call))

    def give_up(self, reason: str, /) -> None:
        """End the connection. Not at once: the link may be in the middle of what it has sent."""
        self._forget_waiting()
        self._connection.end(reason)

    @property
    def _queue(self) -> deque[tuple[Call, bool]]:
        """The one with what is to be answered next."""
        return self._urgent or self._waiting

    def _leave(self) -> tuple[Call, bool]:
        self._services.reads.end()
        return self._queue.popleft()

    def _come_back(self, call: Call) -> None:
        """Wait again, as the first."""
        self._services.reads.begin(self._connection)
        self._queue_of(call).appendleft((call, False))

    async def _read_on(self) -> None:
        """Answer the first of those that wait, from the disk, and go on with the others."""
        if not self._queue:  # the connection was closed before this task ran
            self._reading = False
            return
        call, may_wait = self._leave()
        response: BookieMessage | None
        try:
            response = await (self._learn_lac(call) if may_wait else self._from_disk(call))
        except BrokerError as error:
            response = self._failure(call.request, error)
        except Exception:
            log.exception("%s: closed, this bookie failed to read", self._connection.peer)
            self._reading = False
            self.give_up("this bookie failed to read")
            return
        finally:
            self._reading = False
        if not self._connection.open:
            self._memory.release()
            return
        self._connection.begin()
        if response is not None:
            self._reply(call, response)
            self._memory.release()
        elif may_wait:
            self._poll(call)
        else:
            self._come_back(call)
        self.go_on()
        self._connection.settle()

    async def _learn_lac(self, call: Call) -> None:
        """Have the LAC known, for a read that may wait for the next one."""
        request: Any = call.request
        await self._ledgers.lac(request.ledger_id)

    async def _from_disk(self, call: Call) -> BookieMessage | None:
        """The response; None if it has to wait until there is room for it."""
        memory = self._memory
        if not memory.has(call, 1) and not memory.take_plenty(call):
            size = await self._responses.size(call.request)
            if not self._connection.open or not memory.ask(call, size):
                return None
        response = await self._responses.from_disk(call, memory.bytes_max(call))
        # A list of entries may be large, and the last entry another one by now.
        if not self._connection.open or not memory.ask(call, size_of(response)):
            return None
        return response

    # -- replies ------------------------------------------------------------------------------

    def _refuse(self, call: Call, error: BrokerError) -> None:
        self._reply(call, self._failure(call.request, error))

    def _failure(self, request: BookieMessage, error: BrokerError) -> BookieMessage:
        """The response to a read that ended in an error."""
        status = status_of(error)
        if status in (Status.NO_ENTRY, Status.NO_LEDGER):
            status = self._certain(request, status)
        return refusal(request, status)

    def _certain(self, request: Any, status: Status) -> Status:
        """A ledger in limbo may have lost entries: nothing can be said of what is not here
        (`DataUnknownException`, BP-46).
        """
        with suppress(BrokerError):
            if self._ledgers.known(request.ledger_id).limbo:
                return Status.UNKNOWN_LEDGER_STATE
        return status

    def _reply(self, call: Call, response: Any) -> None:
        self._services.counters.answered(call.request, response.status)
        if not self._connection.open:
            return
        self._wire.reply(call, response)
        self._connection.packed(size_of(response))

    def _forget_waiting(self) -> int:
        """Their number."""
        count = self._count
        self._services.reads.end(count)
        self._services.places.moves(self)
        self._urgent.clear()
        self._waiting.clear()
        if not self._reading:
            self._memory.release()
        return count

    def close(self) -> None:
        """Forget everything that waits: the connection is closed."""
        self._forget_waiting()
        self._polls.close()
        self._timeout.end()
