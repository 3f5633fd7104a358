"""Hands appends to the journal: once for all of a turn of the loop.

Invariant: no append waits for the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from magnetar.bookie.server.journal.writer import Journal


class Flusher:
    """Its task serves appends outside the link's groups, such as those of a task that saves a
    cursor. The link hands its own over by `flush_group`.
    """

    def __init__(self, journal: Journal) -> None:
        self._held = False
        """Whether `flush_group` will be called before the loop turns."""
        self._leave_to_loop = False
        self._journal = journal
        self._woken = False
        self._parked = trio.lowlevel.ParkingLot()
        self._call_soon: deque[Callable[[], None]] = deque()

    def begin_group(self) -> None:
        """Wake no task until `flush_group`, which the caller must call before the loop turns."""
        self._held = True

    def leave_to_loop(self) -> None:
        """From now on whoever appends has `flush_group` called before the loop turns."""
        self._held = self._leave_to_loop = True

    def flush_group(self) -> None:
        """Hand all appends since the last call to the journal."""
        self._held = self._leave_to_loop
        self._journal.hand_over()

    def wake(self) -> None:
        """Called after the first append that waits: wake the task if it is needed."""
        if not self._held:
            self._wake()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function soon on the loop, not at once."""
        self._call_soon.append(call)
        self._wake()

    def _wake(self) -> None:
        self._woken = True
        self._parked.unpark_all()

    async def run(self) -> None:
        while True:
            # A wake-up during this work (a call appends, a hand-over is refused) finds no parked
            # task and is not repeated. Without the flag its append would wait for the next one.
            self._woken = False
            while self._call_soon:
                self._call_soon.popleft()()
            self._journal.hand_over()
            if not self._woken:
                await self._parked.park()
