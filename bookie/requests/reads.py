"""The reads of one connection, in the order in which they can be answered.

What is in memory is answered at once. For everything else one task of the connection reads the
disk, and ends when nothing waits. Responses need no order: a client matches them by their ids.

    a fencing read    fences, and is answered when the fence is durable
    a long poll       waits until the LAC has moved on, or its time is over
    any other read    waits while the client does not receive what it asked for before

`ReadEntryProcessor.java`, `ReadEntryProcessorV3.java`, `LongPollReadEntryProcessorV3.java`,
`ReadLacProcessorV3.java` of BookKeeper 4.18.

Invariants: nothing is read for a client that does not receive (`Connection.congested`); reads that
wait are bounded, of one connection and of all; a fencing read is never answered before its fence is
durable, whatever the answer; an error that nobody expected ends the connection of that read, and
nothing else: any client may ask for anything, and the bookie is for all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Final

from magnetar.bookie.format import availability
from magnetar.bookie.requests.batch import Batch
from magnetar.bookie.requests.errors import refusal, status_of
from magnetar.bookie.requests.long_polls import LongPolls
from magnetar.bookie.requests.notes import Notes
from magnetar.bookie.requests.response_timeout import ResponseTimeout
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BatchRead,
    BookieMessage,
    EntryList,
    Lac,
    ListEntries,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import BookieWire, Call
from magnetar.bookie.server.ledgers.states import UNKNOWN_LAC
from magnetar.core.kernel.errors import BrokerError, EntryNotFound, Fenced, Overloaded, Unauthorized
from magnetar.core.link.connection import Connection

log = logging.getLogger(__name__)

RESPONSE_BYTES: Final = 40
"""About what a response takes without its entries."""
FRAME_HEAD_BYTES: Final = 128
"""More than a frame has around a list of entries."""


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
        self._timeout = ResponseTimeout(services, self._not_received)
        self._reading = False
        """Whether the task runs."""

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
        request = call.request
        if not self._services.places.has_one(self._count):
            self._services.counters.reads_rejected += 1
            self._refuse(call, Overloaded("too many reads wait"))
            return
        self._services.reads.begin(self._connection)
        urgent = isinstance(request, Read) and request.high_priority
        (self._urgent if urgent else self._waiting).append((call, may_wait))
        self.go_on()

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
        """Answer what is in memory, as far as the client receives it, and read the disk."""
        while (queue := self._queue) and not self._reading and not self._connection.congested:
            call, may_wait = queue[0]
            try:
                response = None if may_wait else self._at_once(call.request, call)
            except BrokerError as error:
                response = self._failure(call.request, error)
            except Exception:
                log.exception("%s: closed, this bookie failed to read", self._connection.peer)
                self.give_up("this bookie failed to read")
                return
            if response is None:
                self._reading = True
                self._connection.link.nursery.start_soon(self._read_on)
                return
            self._leave()
            self._reply(call, response)
        if self._queue and not self._reading:
            self._timeout.begin()
            if self._connection.outbox_bytes or self._connection.packed_bytes:
                self._services.places.waits(self, self._count)

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

    async def _read_on(self) -> None:
        """Answer the first of those that wait, from the disk, and go on with the others."""
        if not self._queue:  # the connection was closed before this task ran
            self._reading = False
            return
        call, may_wait = self._leave()
        response: BookieMessage | None
        try:
            response = await self._from_disk(call, may_wait)
        except BrokerError as error:
            response = self._failure(call.request, error)
        except Exception:
            log.exception("%s: closed, this bookie failed to read", self._connection.peer)
            self.give_up("this bookie failed to read")
            return
        finally:
            self._reading = False
        if not self._connection.open:
            return
        self._connection.begin()
        if response is None:
            self._poll(call)
        else:
            self._reply(call, response)
        self.go_on()
        self._connection.settle()

    def _at_once(self, request: BookieMessage, call: Call) -> BookieMessage | None:
        """The response, if all of it is in memory."""
        if isinstance(request, BatchRead):
            batch = Batch(request, self._services.limits.max_batch_read_size)
            return batch.response() if batch.gather(self._ledgers) else None
        if not isinstance(request, Read) or request.entry_id < 0 or request.piggyback:
            return None
        entry = self._ledgers.entry_at_once(request.ledger_id, request.entry_id)
        if entry is None:
            return None
        lac = None
        if isinstance(call.header, Header) and not request.fence:
            lac = self._ledgers.known(request.ledger_id).lac
            if lac == UNKNOWN_LAC:
                return None
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, entry, lac)

    async def _from_disk(self, call: Call, may_wait: bool) -> BookieMessage | None:
        """The response; None for a read that is to wait now that the LAC is known."""
        request = call.request
        if isinstance(request, BatchRead):
            size_max = self._services.limits.max_batch_read_size
            return await Batch(request, size_max).read(self._ledgers)
        if isinstance(request, ReadLac):
            return await self._read_lac(request)
        if isinstance(request, ListEntries):
            size_max = self._services.limits.netty_max_frame_size_bytes - FRAME_HEAD_BYTES
            encode = partial(availability.encode, bytes_max=size_max)
            encoded = await self._ledgers.entry_ids(request.ledger_id, encode)
            return EntryList(Status.OK, request.ledger_id, encoded)
        assert isinstance(request, Read)
        if may_wait:
            await self._learn_lac(request.ledger_id)
            return None
        if request.piggyback and not request.fence:
            return await self._piggyback(request)
        entry = await self._entry(request.ledger_id, request.entry_id)
        lac = None
        if isinstance(call.header, Header) and not request.fence:
            lac = await self._ledgers.lac(request.ledger_id)
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, entry, lac)

    async def _entry(self, ledger_id: int, entry_id: int) -> bytes:
        self._ledgers.known(ledger_id)
        if entry_id == LAST_ENTRY:
            return await self._ledgers.last_entry(ledger_id)
        entry = self._ledgers.entry_at_once(ledger_id, entry_id)
        return entry if entry is not None else await self._ledgers.entry(ledger_id, entry_id)

    async def _learn_lac(self, ledger_id: int) -> None:
        """Have the LAC known; -1 for a ledger without an entry."""
        try:
            await self._ledgers.lac(ledger_id)
        except EntryNotFound:
            state = self._ledgers.known(ledger_id)
            state.lac = max(state.lac, -1)

    async def _piggyback(self, request: Read) -> ReadEntry:
        """The LAC, and the entry behind the one that the client knows, if it is here: with striping
        it may be on other bookies.
        """
        await self._learn_lac(request.ledger_id)
        state = self._ledgers.known(request.ledger_id)
        previous, lac = request.previous_lac, state.lac
        if previous is not None and lac > previous:
            with suppress(EntryNotFound):
                entry = await self._entry(request.ledger_id, previous + 1)
                return ReadEntry(
                    Status.OK, request.ledger_id, previous + 1, entry, lac, state.lac_ms or None
                )
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, None, lac)

    async def _read_lac(self, request: ReadLac) -> Lac:
        packet = self._ledgers.known(request.ledger_id).explicit_lac or None
        last = None
        with suppress(EntryNotFound):
            last = await self._ledgers.last_entry(request.ledger_id)
        status = Status.NO_ENTRY if packet is None and last is None else Status.OK
        return Lac(status, request.ledger_id, packet, last)

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
        self._connection.packed(RESPONSE_BYTES + _size(response))

    def _forget_waiting(self) -> int:
        """Their number."""
        count = self._count
        self._services.reads.end(count)
        self._services.places.moves(self)
        self._urgent.clear()
        self._waiting.clear()
        return count

    def close(self) -> None:
        """Forget everything that waits: the connection is closed."""
        self._forget_waiting()
        self._polls.close()
        self._timeout.end()


def _size(response: BookieMessage) -> int:
    """The bytes of the entries in a response."""
    if isinstance(response, ReadEntry):
        return len(response.entry or b"")
    if isinstance(response, ReadEntries):
        return sum(map(len, response.records))
    return len(response.availability or b"") if isinstance(response, EntryList) else 0
