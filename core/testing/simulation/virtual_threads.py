"""Threads whose calls take virtual time and run whole: the fake of the port for long simulations.

`stepped_threads.py` decides which thread runs when; here a call is made on the loop, after a while,
and nothing comes between its beginning and its end. So no call may wait for another one, or for the
loop: a queue between threads is an error here.

Invariant: calls of one pool begin in the order in which they were asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar, TypeVarTuple, Unpack

import trio

from magnetar.core.testing.simulation.timeline import HostTimeline
from magnetar.core.testing.stepped_threads import FakeWorkers

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class VirtualThread:
    """A `Thread` for one call."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._over = False

    def join(self) -> None:
        """Make the call now, if it was not made."""
        if not self._over:
            self._over = True
            self._call()


class VirtualLock:
    """A lock that is always free: calls run whole."""

    def __enter__(self) -> None:
        """Nobody else can hold it."""

    def __exit__(self, *_: object) -> None:
        """As above."""


class VirtualThreads:
    """See the module's docstring."""

    def __init__(self, host: HostTimeline, seconds: Callable[[], float]) -> None:
        """`seconds` tells how long the next call takes."""
        self._host = host
        self._seconds = seconds

    async def work(
        self,
        call: Callable[[Unpack[Arguments]], Result],
        *arguments: *Arguments,
        abandon: bool,
    ) -> Result:
        with trio.CancelScope(shield=not abandon):
            await self._host.sleep(self._seconds())
        return call(*arguments)

    # -- the port -----------------------------------------------------------------------------

    def start(self, call: Callable[[], object], name: str) -> VirtualThread:
        thread = VirtualThread(call)
        self._host.call_in(self._seconds(), thread.join)
        return thread

    def workers(self, count: int, *, abandon: bool = False) -> FakeWorkers:
        return FakeWorkers(self, count, abandon=abandon)

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return await self.work(call, *arguments, abandon=False)

    def call_soon(
        self, call: Callable[[Unpack[Arguments]], object], *arguments: *Arguments
    ) -> None:
        self._host.call_in(0.0, call, *arguments)

    def call_and_wait(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return call(*arguments)

    def pause(self, seconds: float) -> None:
        """Nobody else waits for the interpreter."""

    def lock(self) -> VirtualLock:
        return VirtualLock()

    def queue(self) -> NoReturn:
        raise NotImplementedError("a call that waits for another one never ends here")
