"""Waits for the result of a plain call.

A function with a callback `done` calls it once, with a result or an error, and cannot be awaited. A
task that waits for it passes `Completion().done`, and awaits `result()`.

Invariant: every waiter gets the first result.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

from magnetar.core.kernel.errors import BrokerError

Result = TypeVar("Result")


class Completion(Generic[Result]):
    """The result that a callback gets."""

    def __init__(self) -> None:
        self._results: list[Result | BrokerError] = []
        self._event = trio.Event()

    def done(self, result: Result | BrokerError) -> None:
        self._results.append(result)
        self._event.set()

    async def result(self) -> Result:
        """The result; raises the error if it is one."""
        await self._event.wait()
        result = self._results[0]
        if isinstance(result, BrokerError):
            raise result
        return result
