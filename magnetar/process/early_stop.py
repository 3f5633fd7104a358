"""A stop while a process still waits to begin: for ZooKeeper, for a place, for a former session.

Nothing has been received by then, so there is nothing to drain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def ended_by(stop: trio.Event) -> AsyncIterator[Callable[[], None]]:
    """A block that a stop cancels, until the function that it gives is called."""
    async with trio.open_nursery() as nursery:
        waiting = trio.CancelScope()
        nursery.start_soon(_cancel_at, stop, waiting, nursery.cancel_scope)
        yield waiting.cancel
        nursery.cancel_scope.cancel()


async def _cancel_at(stop: trio.Event, waiting: trio.CancelScope, block: trio.CancelScope) -> None:
    with waiting:
        await stop.wait()
        block.cancel()
