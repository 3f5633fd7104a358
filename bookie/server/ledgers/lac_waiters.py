"""Reads that wait until the LAC of a ledger is beyond the one they know (long polls). Pure.

Invariant: a waiter is called at most once, and never after `cancel`; there are never more than
`waiters_max`, of all clients together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WAITERS_MAX: Final = 50_000
"""A waiter takes about 500 bytes with its request. Apache's bookies have no limit (`Watchable`)."""


class LacWaiter:
    """One that waits."""

    __slots__ = ("beyond", "call", "ledger_id")

    def __init__(self, ledger_id: int, beyond: int, call: Callable[[], None]) -> None:
        self.ledger_id = ledger_id
        self.beyond = beyond
        self.call = call


class LacWaiters:
    """See the module's docstring."""

    def __init__(self, waiters_max: int = WAITERS_MAX) -> None:
        self._waiting: dict[int, dict[LacWaiter, None]] = {}
        self._count = 0
        self._waiters_max = waiters_max

    def __len__(self) -> int:
        return self._count

    def wait(self, ledger_id: int, beyond: int, call: Callable[[], None]) -> LacWaiter | None:
        """Have `call` called once the LAC is above `beyond`; None if too many wait already."""
        if self._count >= self._waiters_max:
            return None
        waiter = LacWaiter(ledger_id, beyond, call)
        self._waiting.setdefault(ledger_id, {})[waiter] = None
        self._count += 1
        return waiter

    def cancel(self, waiter: LacWaiter) -> None:
        """Forget a waiter, if it has not been called."""
        waiting = self._waiting.get(waiter.ledger_id, {})
        if waiter in waiting:
            del waiting[waiter]
            self._count -= 1
            if not waiting:
                del self._waiting[waiter.ledger_id]

    def advanced(self, ledger_id: int, lac: int) -> None:
        """The LAC of a ledger is this one now."""
        if not self._count:
            return
        for waiter in [one for one in self._waiting.get(ledger_id, ()) if one.beyond < lac]:
            self._leave(waiter)

    def ended(self, ledger_id: int) -> None:
        """The ledger is fenced or deleted: nobody should wait for it
        (`TransientLedgerInfo.notifyWatchers(Long.MAX_VALUE)` of 4.18).
        """
        for waiter in list(self._waiting.get(ledger_id, ())):
            self._leave(waiter)

    def _leave(self, waiter: LacWaiter) -> None:
        self.cancel(waiter)
        waiter.call()
