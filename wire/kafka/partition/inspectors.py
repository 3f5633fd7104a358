"""Fair scheduling of batch validation: threads are few, and some batches take them long.

The cost of a batch is known when it is done, so it is charged to its connection afterwards, as
*start-time fair queueing* does (Goyal, Vin, Cheng 1996): work begins, in virtual time, when its
connection's last work ended, or now if that is longer ago; the earliest start goes first, of equal
ones the smaller batch. So a connection that sends ever more expensive batches waits for itself, and
one that sends now and then waits for the batches in work, not for another's queue.

Invariants: at most `at_once` calls are under way; while any wait, that many are; virtual time never
runs back.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeVar, TypeVarTuple

import trio

from magnetar.core.kernel.clock import Clock

Found = TypeVar("Found")
Parts = TypeVarTuple("Parts")


class Account:
    """Up to when, in virtual time, a connection has used what is its share."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0.0


class Inspectors:
    """See the module's docstring."""

    def __init__(self, clock: Clock, at_once: int) -> None:
        self._clock = clock
        self._free = at_once
        self._threads = trio.CapacityLimiter(at_once)
        self._now = 0.0
        self._numbers = count()
        self._waiting: list[tuple[float, int, int, trio.Event]] = []
        """When each begins, its size, the order of asking: a heap."""

    async def run(
        self, account: Account, size: int, call: Callable[[*Parts], Found], *parts: *Parts
    ) -> Found:
        """Call it in a thread, when it is its turn."""
        begins = max(self._now, account.used)
        if self._free:
            self._free -= 1
        else:
            await self._turn((begins, size, next(self._numbers), trio.Event()))
        self._now = max(self._now, begins)
        begun = self._clock.monotonic()
        try:
            return await trio.to_thread.run_sync(call, *parts, limiter=self._threads)
        finally:
            account.used = begins + self._clock.monotonic() - begun
            self._pass_on()

    async def _turn(self, mine: tuple[float, int, int, trio.Event]) -> None:
        heappush(self._waiting, mine)
        try:
            await mine[-1].wait()
        except trio.Cancelled:
            if mine[-1].is_set():
                self._pass_on()
            else:
                self._waiting.remove(mine)
                heapify(self._waiting)
            raise

    def _pass_on(self) -> None:
        if self._waiting:
            heappop(self._waiting)[-1].set()
        else:
            self._free += 1
