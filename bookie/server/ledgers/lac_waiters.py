"""Reads that wait until the LAC of a ledger is beyond the one they know (long polls). Pure.

Those of a ledger are a heap, ordered by the LAC they know: one add costs those that it wakes, and
no others, however many wait. A cancelled one stays in its heap until more are cancelled than wait.

Invariants: a waiter is called at most once, and never after `cancel`; there are never more than
`waiters_max`, of all clients together; a heap has no more cancelled waiters than `COMPACT_AT`, or
than others.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

WAITERS_MAX: Final = 50_000
"""A waiter takes about 600 bytes with its request. Apache's bookies have no limit (`Watchable`)."""
PARTS: Final = 8
"""One client may have this part of what others leave of them."""
FEW: Final = 16
"""And so many as long as there are any."""
COMPACT_AT: Final = 64


class LacWaiter:
    """One that waits; after that, `call` is None."""

    __slots__ = ("beyond", "call", "ledger_id", "number")

    def __init__(self, ledger_id: int, beyond: int, number: int, call: Callable[[], None]) -> None:
        """`number` orders those that know the same LAC: first come, first called."""
        self.ledger_id = ledger_id
        self.beyond = beyond
        self.number = number
        self.call: Callable[[], None] | None = call

    def __lt__(self, other: LacWaiter) -> bool:
        return (self.beyond, self.number) < (other.beyond, other.number)


class _OfLedger:
    """The waiters of one ledger."""

    __slots__ = ("count", "heap")

    def __init__(self) -> None:
        self.heap: list[LacWaiter] = []
        self.count = 0
        """Those that are not cancelled."""


class LacWaiters:
    """See the module's docstring."""

    def __init__(self, waiters_max: int = WAITERS_MAX) -> None:
        self._waiting: dict[int, _OfLedger] = {}
        self._count = self._number = 0
        self._waiters_max = waiters_max

    def __len__(self) -> int:
        return self._count

    def has_place(self, own: int) -> bool:
        """Whether a client of which so many wait may have one more."""
        left = self._waiters_max - self._count
        return left > 0 and own < max(FEW, (left + own) // PARTS)

    def wait(self, ledger_id: int, beyond: int, call: Callable[[], None]) -> LacWaiter | None:
        """Have `call` called once the LAC is above `beyond`; None if too many wait already."""
        if self._count >= self._waiters_max:
            return None
        self._number += 1
        waiter = LacWaiter(ledger_id, beyond, self._number, call)
        waiting = self._waiting.setdefault(ledger_id, _OfLedger())
        heappush(waiting.heap, waiter)
        waiting.count += 1
        self._count += 1
        return waiter

    def cancel(self, waiter: LacWaiter) -> None:
        """Forget a waiter, if it has not been called."""
        if waiter.call is None:
            return
        waiter.call = None
        self._count -= 1
        waiting = self._waiting[waiter.ledger_id]
        waiting.count -= 1
        if not waiting.count:
            del self._waiting[waiter.ledger_id]
        elif len(waiting.heap) - waiting.count > max(COMPACT_AT, waiting.count):
            waiting.heap = [one for one in waiting.heap if one.call is not None]
            heapify(waiting.heap)

    def advanced(self, ledger_id: int, lac: int) -> None:
        """The LAC of a ledger is this one now."""
        if self._count and (waiting := self._waiting.get(ledger_id)) is not None:
            # Found before any is called: a call may have another one wait.
            found = []
            while waiting.heap and waiting.heap[0].beyond < lac:
                found.append(heappop(waiting.heap))
            self._call(waiting, found)

    def ended(self, ledger_id: int) -> None:
        """The ledger is fenced or deleted: nobody should wait for it
        (`TransientLedgerInfo.notifyWatchers(Long.MAX_VALUE)` of 4.18).
        """
        waiting = self._waiting.get(ledger_id)
        if waiting is not None:
            found, waiting.heap = sorted(waiting.heap), []
            self._call(waiting, found)

    def _call(self, waiting: _OfLedger, found: list[LacWaiter]) -> None:
        """Call those that have left the heap."""
        for waiter in found:
            call = waiter.call
            if call is not None:
                self.cancel(waiter)
                call()
