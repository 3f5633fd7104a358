"""Threads of this system, behind the port `Threads`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

import trio

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

_never: Final = threading.Event()
"""Never set: waiting for it with a timeout lets other threads run."""


class SystemWorkers:
    """`Workers` in trio's thread pool."""

    def __init__(self, count: int, *, abandon: bool) -> None:
        self._limiter = trio.CapacityLimiter(count)
        self._abandon = abandon

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return await trio.to_thread.run_sync(
            call, *arguments, limiter=self._limiter, abandon_on_cancel=self._abandon
        )


class SystemThreads:
    """`Threads` for the loop that creates them. Without a loop, `call_soon` and `call_and_wait` do
    not work.
    """

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token() if trio.lowlevel.in_trio_run() else None

    def start(self, call: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()
        return thread

    def workers(self, count: int, *, abandon: bool = False) -> SystemWorkers:
        return SystemWorkers(count, abandon=abandon)

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return await trio.to_thread.run_sync(call, *arguments)

    def call_soon(
        self, call: Callable[[Unpack[Arguments]], object], *arguments: *Arguments
    ) -> None:
        assert self._token is not None, "made outside of a loop"
        try:
            self._token.run_sync_soon(call, *arguments)
        except trio.RunFinishedError:
            return

    def call_and_wait(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return trio.from_thread.run_sync(call, *arguments, trio_token=self._token)

    def pause(self, seconds: float) -> None:
        _never.wait(seconds)

    def lock(self) -> threading.Lock:
        return threading.Lock()

    def queue(self) -> SimpleQueue[Any]:
        return SimpleQueue()
