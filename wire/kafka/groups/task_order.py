"""A queue of turns for tasks: a turn is taken when a request arrives, and awaited by its task
later.

Tasks of one connection may run in any order. Work that must be done in the order of the requests
takes a turn before its task begins.

Invariant: the turns of one key come in the order in which they were taken; each taken turn must be
used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio


class TaskOrder:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._last: dict[Hashable, trio.Event] = {}

    def take(self, key: Hashable) -> AbstractAsyncContextManager[None]:
        """Take the next turn of a key: entering it waits, leaving it ends it. Plain call."""
        before = self._last.get(key)
        mine = self._last[key] = trio.Event()
        return self._turn(key, before, mine)

    @asynccontextmanager
    async def _turn(
        self, key: Hashable, before: trio.Event | None, mine: trio.Event
    ) -> AsyncIterator[None]:
        try:
            if before is not None:
                await before.wait()
            yield
        finally:
            mine.set()
            if self._last.get(key) is mine:
                del self._last[key]
