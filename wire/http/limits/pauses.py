"""The longest time that a step of an HTTP request blocked the loop.

A request that computes without a break delays all other work, that of producers and consumers too.
The link measures its own sweeps; this module measures every step of a request, from the
moment the loop resumes it until it yields.

Not measured: the web server's own work (parsing a request, sending).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from magnetar.core.kernel.clock import Clock

Result = TypeVar("Result")
Piece = TypeVar("Piece")


class Pauses:
    """See the module's docstring."""

    __slots__ = ("_clock", "longest_seconds")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.longest_seconds = 0.0

    async def of(self, steps: Coroutine[Any, Any, Result]) -> Result:
        """Await a coroutine, and measure each of its steps."""
        return await self._measured(steps)

    @coroutine
    def _measured(self, steps: Coroutine[Any, Any, Result]) -> Generator[Any, Any, Result]:
        step, sent = steps.send, None
        while True:
            begun = self._clock.monotonic()
            try:
                requested = step(sent)
            except StopIteration as ended:
                result: Result = ended.value
                return result
            finally:
                took = self._clock.monotonic() - begun
                self.longest_seconds = max(self.longest_seconds, took)
            try:
                sent = yield requested
                step = steps.send
            except BaseException as error:  # noqa: BLE001  # passed on to the coroutine
                step, sent = steps.throw, error

    async def pieces(self, pieces: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        """The items of an async generator; measures each of its steps."""
        while True:
            try:
                piece = await self.of(_next(pieces))
            except StopAsyncIteration:
                return
            yield piece


async def _next(pieces: AsyncIterator[Piece]) -> Piece:
    return await pieces.__anext__()
