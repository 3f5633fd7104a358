"""The long polls of one connection: reads that wait until the LAC has moved on, or their time is
over (`LongPollReadEntryProcessorV3.java` of BookKeeper 4.18).

Invariant: `over` is called once for each poll, unless the connection is closed before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from magnetar.bookie.requests.deadlines import Deadline
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.rpc.wire import Call
from magnetar.bookie.server.ledgers.lac_waiters import LacWaiter


class _LongPoll(Struct, eq=False):
    """A read that waits for the LAC."""

    call: Call
    waiter: LacWaiter | None = None
    deadline: Deadline | None = None


class LongPolls:
    """See the module's docstring."""

    def __init__(self, services: BookieServices, over: Callable[[Call], None]) -> None:
        self._services = services
        self._waiters = services.ledgers.waiters
        self._over = over
        self._polls: set[_LongPoll] = set()

    def wait(self, call: Call) -> bool:
        """Wait for the LAC; False if too many do, of all connections or of this one."""
        request: Any = call.request
        if not self._waiters.has_place(len(self._polls)):
            return False
        poll = _LongPoll(call)
        over = partial(self._ended, poll)
        poll.waiter = self._waiters.wait(request.ledger_id, request.previous_lac, over)
        if poll.waiter is None:
            return False
        milliseconds = min(max(request.timeout_ms, 0), self._services.limits.long_poll_ms_max)
        poll.deadline = self._services.deadlines.call_in(milliseconds / 1000, over)
        self._polls.add(poll)
        return True

    def _ended(self, poll: _LongPoll) -> None:
        self._polls.discard(poll)
        self._forget(poll)
        self._over(poll.call)

    def _forget(self, poll: _LongPoll) -> None:
        if poll.waiter is not None:
            self._waiters.cancel(poll.waiter)
        if poll.deadline is not None:
            self._services.deadlines.cancel(poll.deadline)

    def close(self) -> None:
        """Forget all: the connection is closed."""
        for poll in self._polls:
            self._forget(poll)
        self._polls.clear()
