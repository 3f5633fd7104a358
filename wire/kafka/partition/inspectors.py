"""Fair scheduling of batch validation between connections, on few threads.

The cost of a batch is known only after its validation, so it is charged to the connection then, as
in *start-time fair queueing* (Goyal, Vin, Cheng 1996). The start tag of a batch is the virtual time
at which its connection's last batch ended, or now if that is later. The lowest tag runs first, and
of equal tags the smaller batch. So a connection with expensive batches waits behind itself; one
with few batches waits for those that run, but not for another connection's queue.

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
    """The virtual time up to which a connection has used its share."""

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
        """A heap: start tag, size, order of arrival."""

    async def run(
        self, account: Account, size: int, call: Callable[[*Parts], Found], *parts: *Parts
    ) -> Found:
        """Run the call in a thread when its turn comes."""
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
