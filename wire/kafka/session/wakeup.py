"""A wait for an event, with a deadline."""

from __future__ import annotations

import trio


class Wakeup:
    """A wait that plain calls end; a call before the wait counts."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, deadline: float) -> bool:
        """Wait for a `wake` since the last wait; False if the deadline came first."""
        with trio.move_on_at(deadline) as waiting:
            await self._event.wait()
        self._event = trio.Event()
        return not waiting.cancelled_caught
