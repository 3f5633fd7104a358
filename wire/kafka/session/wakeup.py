"""A wait for an event, with a deadline."""

from __future__ import annotations

import trio


class Wakeup:
    """Woken by plain calls, as often as they like."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, deadline: float) -> bool:
        """Whether there were any news since the last time; False when the time is over."""
        with trio.move_on_at(deadline) as waiting:
            await self._event.wait()
        self._event = trio.Event()
        return not waiting.cancelled_caught
