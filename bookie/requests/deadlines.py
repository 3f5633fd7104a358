"""Calls at a time, for all connections of the bookie: one task, whatever the number.

Invariant: a call is made once, at its time or a little later, unless it was cancelled.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

import trio

COMPACT_AT: Final = 1024
"""Cancelled deadlines are dropped when there are more than this, and more than others."""


class Deadline:
    """One call at a time."""

    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def __lt__(self, other: Deadline) -> bool:
        return self.at < other.at


class Deadlines:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._heap: list[Deadline] = []
        self._cancelled = 0
        self._sooner = trio.Event()

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_in(self, seconds: float, call: Callable[[], None]) -> Deadline:
        """Make a call after that time."""
        deadline = Deadline(trio.current_time() + seconds, call)
        if not self._heap or deadline < self._heap[0]:
            self._sooner.set()
        heapq.heappush(self._heap, deadline)
        return deadline

    def cancel(self, deadline: Deadline) -> None:
        """Do not make that call, if it was not made."""
        if deadline.call is None:
            return
        deadline.call = None
        self._cancelled += 1
        if self._cancelled > COMPACT_AT and 2 * self._cancelled > len(self._heap):
            self._heap = [one for one in self._heap if one.call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    async def run(self) -> None:
        """Make the calls, until cancelled."""
        while True:
            self._sooner = trio.Event()
            at = self._heap[0].at if self._heap else math.inf
            with trio.move_on_at(at):
                await self._sooner.wait()
            self._call_due(trio.current_time())

    def _call_due(self, now: float) -> None:
        while self._heap and self._heap[0].at <= now:
            deadline = heapq.heappop(self._heap)
            call, deadline.call = deadline.call, None
            if call is None:
                self._cancelled -= 1
            else:
                call()
