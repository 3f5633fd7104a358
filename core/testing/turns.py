"""Counts the turns of other tasks while long work is done on the loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Turns:
    """The number of turns of a task that does nothing else."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Count turns for the length of a block."""
    turns = Turns()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take)
        yield turns
        nursery.cancel_scope.cancel()
