"""The connection to one bookie, made when it is needed and again after its end.

    state        what is asked of it         leaves for
    idle         begins to connect           connecting
    connecting   waits                       connected; failed
    connected    is sent, in the order of    failed, with the connection, after bytes that make no
                 asking, together            sense, or when nothing was answered in time
    failed       fails at once               idle, after a while that doubles with each failure

All requests that are not answered when a connection ends end with an error: nobody knows whether
they were carried out. One that is not answered in time ends as well; the connection with it, if
nothing at all was received since, for a peer that is not there any more looks like this.

Nothing awaits for each request, and no task runs for one: `add` and `ask` are plain calls, which
report by a callback, never from within.

Invariant: of each request the callback is called once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import count
from typing import Final, Protocol

import trio

from magnetar.bookie.client.connection.sent_requests import (
    AddsDone,
    Replied,
    SentAdds,
    SentRequest,
    SentRequests,
)
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.format.entries import Run
from magnetar.bookie.rpc.client_wire import AddsAnswered, ClientWire, MatchedResponse, pack_request
from magnetar.bookie.rpc.messages import (
    BatchRead,
    BookieMessage,
    Read,
    ReadEntries,
    ReadEntry,
    Status,
)
from magnetar.core.kernel.errors import BrokerError, Overloaded, StorageFailed, WireError
from magnetar.core.ports.network import Network, NetworkConnection

RECEIVE_BYTES: Final = 256 * 1024
FAULTS: Final = frozenset((Status.IO_ERROR, Status.TOO_MANY_REQUESTS))
"""What a bookie answers when it is at fault itself."""
log = logging.getLogger(__name__)


class Surroundings(Protocol):
    """What a connection needs of those who use it, all on the loop."""

    def address_of(self, bookie_id: str) -> tuple[str, int]:
        """Where the bookie is now; a `BrokerError` if nobody knows."""
        ...

    def touch(self, connection: BookieConnection) -> None:
        """There is something to flush."""
        ...

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make a call soon, and not from within."""
        ...

    def failed(self, bookie_id: str, count: int) -> None:
        """Requests have failed, by the bookie's fault."""
        ...

    def begin(self) -> None:
        """Results follow."""
        ...

    def settle(self) -> None:
        """All results are delivered."""
        ...


class BookieConnection:
    """See the module's docstring."""

    def __init__(
        self,
        bookie_id: str,
        network: Network,
        settings: ConnectionSettings,
        surroundings: Surroundings,
        version: int = 2,
    ) -> None:
        self.bookie_id = bookie_id
        self.failed_at: float | None = None
        """When the last connection ended or could not be made; None once one works."""
        self.refused_at: float | None = None
        """When the bookie ended a connection on which it was asked and never answered; None once
        it answers.
        """
        self._network = network
        self._settings = settings
        self._surroundings = surroundings
        self._version = version
        self._sent = SentRequests()
        self._numbers = count(1)
        self._outbox: list[bytes] = []
        self._unsent = memoryview(b"")
        """What the system did not take; a task sends it."""
        self._connection: NetworkConnection | None = None
        self._scope = trio.CancelScope()
        self._ended_by = ""
        self._needed = trio.Event()
        self._sendable = trio.Event()
        self._received_at = 0.0
        self._has_answered = False
        """Whether anything came on this connection."""
        self._pause = settings.retry_seconds_min
        self._not_before = -float("inf")
        # What is asked has to be answered in that time, also while there is no connection.
        self._connect_seconds = min(settings.connect_seconds, settings.answer_seconds)

    # -- asking -------------------------------------------------------------------------------

    def add(self, run: Run, frames: Sequence[bytes], done: AddsDone) -> None:
        """Have a run stored; `frames` are `pack_adds` of it. Plain call."""
        if self._sent.adds_bytes + run.size > self._settings.adds_bytes_max:
            error = Overloaded(f"bookie {self.bookie_id} does not keep up")
            self._surroundings.call_soon(partial(done, error))
            return
        deadline = trio.current_time() + self._settings.answer_seconds
        sent = SentAdds(run.ledger_id, run.first, run.last, run.size, deadline, done)
        self._sent.add(sent)
        self._outbox += frames
        self._surroundings.touch(self)

    def ask(self, request: BookieMessage, replied: Replied, seconds: float = 0.0) -> None:
        """Send any other request; `seconds` more may pass before its answer. Plain call."""
        number = next(self._numbers)
        if isinstance(request, BatchRead):
            request = BatchRead(
                request.ledger_id,
                request.first,
                number,
                request.count_max,
                request.bytes_max,
                request.master_key,
                request.fence,
            )
        deadline = trio.current_time() + self._settings.answer_seconds + seconds
        self._sent.request(self._key(request, number), SentRequest(deadline, replied))
        self._outbox.append(pack_request(self._version, number, request))
        self._surroundings.touch(self)

    def say(self, request: BookieMessage) -> None:
        """Send something whose answer does not matter, if there is a connection. Plain call."""
        if self._connection is not None:
            self._outbox.append(pack_request(self._version, next(self._numbers), request))
            self._surroundings.touch(self)

    def _key(self, request: BookieMessage, number: int) -> Hashable:
        if self._version == 2 and isinstance(request, Read):
            return request.ledger_id, request.entry_id
        return number

    def flush(self) -> None:
        """Send what was asked since the last call, as far as the system takes it."""
        connection = self._connection
        if connection is None:
            self._needed.set()
            return
        if self._unsent or not self._outbox:
            return
        data = self._outbox[0] if len(self._outbox) == 1 else b"".join(self._outbox)
        self._outbox.clear()
        try:
            sent = connection.send_at_once(data)
        except OSError as error:
            self._end(str(error))
            return
        if sent < len(data):
            self._unsent = memoryview(data)[sent:]
            self._sendable.set()

    # -- the connection -----------------------------------------------------------------------

    async def run(self) -> None:
        """Connect whenever something is asked, until cancelled."""
        while True:
            await self._needed.wait()
            self._needed = trio.Event()
            if trio.current_time() < self._not_before:
                self._fail("it could not be reached a moment ago")
                continue
            try:
                with trio.fail_after(self._connect_seconds):
                    host, port = self._surroundings.address_of(self.bookie_id)
                    connection = await self._network.connect(host, port)
            except (OSError, BrokerError, trio.TooSlowError) as error:
                self._pause_after_failure()
                reason = str(error) or "it does not answer"
                log.info("bookie %s: %s", self.bookie_id, reason)
                self._fail(reason)
                continue
            try:
                await self._serve(connection)
            finally:
                self._connection = None
                connection.close()
            self._pause_after_failure()
            log.info("bookie %s: %s", self.bookie_id, self._ended_by)
            self._fail(self._ended_by)

    def _pause_after_failure(self) -> None:
        self.failed_at = trio.current_time()
        self._not_before = self.failed_at + self._pause
        self._pause = min(2 * self._pause, self._settings.retry_seconds_max)

    def _fail(self, reason: str) -> None:
        """End all that was asked."""
        self._outbox.clear()
        self._unsent = memoryview(b"")
        self._surroundings.begin()
        failed = self._sent.fail_all(StorageFailed(f"bookie {self.bookie_id}: {reason}"))
        self._surroundings.failed(self.bookie_id, failed)
        self._surroundings.settle()

    async def _serve(self, connection: NetworkConnection) -> None:
        self._connection = connection
        self._ended_by = ""
        self._sendable = trio.Event()
        self._received_at = trio.current_time()
        self._has_answered = False
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            nursery.start_soon(self._send_rest, connection)
            nursery.start_soon(self._expire)
            self.flush()
            try:
                await self._receive(connection)
            except OSError as error:
                self._refused(str(error))
            except WireError as error:
                self._end(str(error))

    def _refused(self, reason: str) -> None:
        """The bookie has ended the connection."""
        if self._sent and not self._has_answered:
            self.refused_at = trio.current_time()
        self._end(reason)

    def _end(self, reason: str) -> None:
        """End the connection; `run` has the rest done."""
        self._ended_by = self._ended_by or reason
        self._scope.cancel()

    async def _receive(self, connection: NetworkConnection) -> None:
        await connection.deliver(RECEIVE_BYTES, partial(self._take_all, ClientWire(self._version)))
        self._refused("it has closed the connection")

    def _take_all(self, wire: ClientWire, data: bytes) -> None:
        """Take all responses that are whole by now."""
        self._received_at = trio.current_time()
        self._has_answered, self.refused_at = True, None
        self._pause, self.failed_at = self._settings.retry_seconds_min, None
        events = wire.feed(data)
        if events:
            self._surroundings.begin()
            for event in events:
                self._take(event)
            self._surroundings.settle()

    def _take(self, event: AddsAnswered | MatchedResponse) -> None:
        if isinstance(event, AddsAnswered):
            if event.status in FAULTS:
                self._surroundings.failed(self.bookie_id, event.count)
            self._sent.adds_answered(event.status, event.ledger_id, event.first, event.count)
            return
        response = event.response
        if getattr(response, "status", None) in FAULTS:
            self._surroundings.failed(self.bookie_id, 1)
        key: Hashable = event.txn_id
        if isinstance(response, ReadEntries):
            key = response.request_id
        elif self._version == 2 and isinstance(response, ReadEntry):
            key = response.ledger_id, response.entry_id
        self._sent.answered(key, response)

    async def _send_rest(self, connection: NetworkConnection) -> None:
        """Send what the system did not take at once."""
        while True:
            await self._sendable.wait()
            self._sendable = trio.Event()
            try:
                while self._unsent:
                    await connection.wait_sendable()
                    sent = connection.send_at_once(self._unsent)
                    self._unsent = self._unsent[sent:]
                    if not self._unsent:
                        self.flush()
            except OSError as error:
                self._end(str(error))
                return

    async def _expire(self) -> None:
        """End what is not answered in time."""
        while True:
            await trio.sleep(self._settings.expire_seconds)
            now = trio.current_time()
            text = f"bookie {self.bookie_id} has not answered in time"
            self._surroundings.begin()
            expired = self._sent.expire(now, StorageFailed(text))
            self._surroundings.failed(self.bookie_id, expired)
            self._surroundings.settle()
            if expired and (self._unsent or self._outbox):
                # What waits here is in no other limit once its requests have ended.
                self._end("it does not take what is sent to it in time")
                return
            if expired and now - self._received_at >= self._settings.answer_seconds:
                self._end("it does not answer")
                return
