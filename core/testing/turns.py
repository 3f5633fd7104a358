"""How often others have their turn on the loop while something long goes on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Turns:
    """As many as somebody had who wants nothing but the next one."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


@asynccontextmanager
async def counted_turns() -> AsyncIterator[Turns]:
    """Counts them for the length of the block."""
    turns = Turns()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take)
        yield turns
        nursery.cancel_scope.cancel()
