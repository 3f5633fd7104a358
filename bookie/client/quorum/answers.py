"""Answers of several bookies to one question, in the order in which they come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import trio

from magnetar.bookie.client.connection.connection import BookieConnection
from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.statuses import error_of
from magnetar.bookie.rpc.messages import (
    BatchRead,
    BookieMessage,
    Read,
    ReadEntry,
    Status,
    StatusOnly,
)
from magnetar.core.kernel.errors import (
    BrokerError,
    Corrupted,
    EntryNotFound,
    LedgerNotFound,
    StorageFailed,
)

Result = TypeVar("Result")
MISSING = (EntryNotFound, LedgerNotFound)
"""What a bookie promises about an entry that it does not have."""
SPECULATIVE_FACTOR = 2.0
"""`speculativeReadTimeout` grows by it with each bookie that is asked
(`DefaultSpeculativeRequestExecutionPolicy.java` of 4.18).
"""


class BookieAnswer(NamedTuple):
    """What one of the bookies said."""

    position: int
    response: BookieMessage | BrokerError


class Answers:
    """See the module's docstring."""

    def __init__(self, connections: Connections, held: Callable[[int], None] | None = None) -> None:
        """`held` hears of the bytes of each entry that comes, and of as many less when it is taken.
        It may call `end`.
        """
        self.waiting = 0
        """How many were asked and have not answered."""
        self._connections = connections
        self._come: deque[BookieAnswer] = deque()
        self._held = held
        self._event = trio.Event()
        self._over = False

    def ask(self, position: int, bookie: str, request: BookieMessage) -> None:
        """Ask one more."""
        self.waiting += 1
        self._connection(bookie, request).ask(request, partial(self._replied, position, bookie))

    def _connection(self, bookie: str, request: BookieMessage) -> BookieConnection:
        if isinstance(request, BatchRead):
            return self._connections.for_batches(bookie)
        if isinstance(request, Read) and request.fence:
            return self._connections.for_fences(bookie)
        return self._connections.to(bookie)

    def _replied(self, position: int, bookie: str, response: BookieMessage | BrokerError) -> None:
        status = getattr(response, "status", Status.OK)
        if isinstance(response, StatusOnly) and status is Status.OK:
            status = Status.IO_ERROR
        if status is not Status.OK:
            response = error_of(status, bookie, type(response).__name__)
        if self._over:
            return
        self._come.append(BookieAnswer(position, response))
        self._event.set()
        if self._held is not None:
            self._held(_entry_bytes(response))

    async def next(self) -> BookieAnswer:
        """The next answer."""
        while not self._come:
            self._event = trio.Event()
            await self._event.wait()
        self.waiting -= 1
        answer = self._come.popleft()
        if self._held is not None:
            self._held(-_entry_bytes(answer.response))
        return answer

    def end(self) -> None:
        """Nobody asks for the next one any more: those that still come take no memory."""
        self._over = True
        come, self._come = self._come, deque()
        if self._held is not None:
            self._held(-sum(_entry_bytes(answer.response) for answer in come))


def _entry_bytes(response: BookieMessage | BrokerError) -> int:
    return len(response.entry or b"") if isinstance(response, ReadEntry) else 0


async def ask_in_turn(
    connections: Connections,
    bookies: Sequence[str],
    request: BookieMessage,
    check: Callable[[BookieMessage], Result],
    speculative_seconds: float,
) -> Result:
    """The first answer that passes `check`, of bookies that have the same.

    The next one is asked when one fails, and when none has answered for a while. `EntryNotFound`
    only if all promise it.
    """
    answers = Answers(connections)
    errors: list[BrokerError] = []
    patience = speculative_seconds
    try:
        for position, bookie in enumerate(bookies):
            answers.ask(position, bookie, request)
            left = patience if position + 1 < len(bookies) else math.inf
            with trio.move_on_after(left):
                while answers.waiting:
                    failed = len(errors)
                    found = _checked(await answers.next(), check, errors)
                    if len(errors) == failed:
                        return found[0]
                    if position + 1 < len(bookies):
                        break
            patience *= SPECULATIVE_FACTOR
    finally:
        answers.end()
    raise _worst(errors)


def _checked(
    answer: BookieAnswer, check: Callable[[BookieMessage], Result], errors: list[BrokerError]
) -> list[Result]:
    if isinstance(answer.response, BrokerError):
        errors.append(answer.response)
        return []
    try:
        return [check(answer.response)]
    except BrokerError as error:
        errors.append(error)
        return []


def _worst(errors: Sequence[BrokerError]) -> BrokerError:
    """What is true of an entry that no bookie could give."""
    said = "; ".join(dict.fromkeys(map(str, errors)))
    if all(isinstance(error, MISSING) for error in errors):
        return EntryNotFound(said)
    if all(isinstance(error, (Corrupted, *MISSING)) for error in errors):
        return Corrupted(said)
    return StorageFailed(said)  # one that did not answer may have it intact
