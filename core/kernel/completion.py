"""Waiting for what a plain call tells later.

Whatever takes a `done` tells it once, a result or an error, and cannot be awaited. A task that
wants to wait hands over `Completion().done`, and awaits `told()`.

Invariant: what was told first is what everybody hears who asks.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

from magnetar.core.kernel.errors import BrokerError

Result = TypeVar("Result")


class Completion(Generic[Result]):
    """Somebody who waits for what `done` is told."""

    def __init__(self) -> None:
        self._told: list[Result | BrokerError] = []
        self._event = trio.Event()

    def done(self, result: Result | BrokerError) -> None:
        self._told.append(result)
        self._event.set()

    async def told(self) -> Result:
        """The result; raises the error if it is one."""
        await self._event.wait()
        result = self._told[0]
        if isinstance(result, BrokerError):
            raise result
        return result
