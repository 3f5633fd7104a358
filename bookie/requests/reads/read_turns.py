"""Turns of connections that have more reads than one sweep answers.

A client may ask for thousands of small entries at once, all in memory. Who answered them all would
serve nobody meanwhile, and with hundreds of such clients each read of another one waited for
seconds. So a connection answers `TURN_READS` in a sweep, and then waits here for another turn:
behind all others that wait, and between two sweeps, in which new requests come.

Limits: turns last `SLICE_SECONDS`, and the one more that has begun by then, before the loop turns.

Invariants: who waits has another turn, unless its link ends; a task runs only while somebody waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import trio

from magnetar.core.link.loop import Link

TURN_READS: Final = 64
"""Half a millisecond, of small entries."""
SLICE_SECONDS: Final = 0.002


class Turn(Protocol):
    """The reads of a connection that wait for their turn."""

    def take_turn(self) -> None:
        """Answer some; perhaps call `later` again."""
        ...


class ReadTurns:
    """See the module's docstring."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.taken = 0
        """Since the start."""
        self._now = now
        self._waiting: dict[Turn, None] = {}
        """The one that has waited longest first."""
        self._runs = False

    def later(self, who: Turn, link: Link) -> None:
        """Have another turn when the link has swept."""
        self._waiting[who] = None
        if not self._runs:
            self._runs = True
            link.nursery.start_soon(self._run, link)

    async def _run(self, link: Link) -> None:
        try:
            while self._waiting:
                await trio.lowlevel.checkpoint()
                link.begin()
                self._take_turns()
                link.settle()
        finally:
            self._runs = False

    def _take_turns(self) -> None:
        until = self._now() + SLICE_SECONDS
        while self._waiting:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self.taken += 1
            first.take_turn()
            if self._now() >= until:
                return
