"""Threads, for calls that block; they report to the event loop.

All concurrency beside the loop goes through this port, and so does all waiting between threads. So
a simulator that implements it decides which thread runs when.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Thread(Protocol):
    """A started thread."""

    def join(self) -> None:
        """Block until the thread has ended."""
        ...


class Queue(Protocol):
    """A FIFO queue between threads; `queue.SimpleQueue` is one."""

    def put(self, item: Any, /) -> None:
        """Put an item; never blocks, so any thread may call it, the loop's too."""
        ...

    def get(self, *, timeout: float | None = None) -> Any:
        """Block until there is an item; `queue.Empty` after `timeout` seconds."""
        ...

    def empty(self) -> bool: ...


class Workers(Protocol):
    """A pool with a limited number of threads."""

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """Run a call on a free thread, and wait for it; its exception is raised here."""
        ...


class Threads(Protocol):
    """Starts threads, and makes their locks and queues."""

    def start(self, call: Callable[[], None], name: str) -> Thread:
        """Start a daemon thread for one call."""
        ...

    def workers(self, count: int, *, abandon: bool = False) -> Workers:
        """Make a pool. With `abandon`, a cancelled `run` returns without waiting for the call."""
        ...

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """Run a call on a worker of the pool that the whole process shares."""
        ...

    def call_soon(
        self, call: Callable[[Unpack[Arguments]], object], *arguments: *Arguments
    ) -> None:
        """Schedule a call on the loop, from any thread; ignored once the loop has ended."""
        ...

    def call_and_wait(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """Make a call on the loop, from a worker, and wait for its result."""
        ...

    def pause(self, seconds: float) -> None:
        """Sleep; from any thread but the loop's."""
        ...

    def lock(self) -> AbstractContextManager[object]:
        """A lock between threads, to be held briefly."""
        ...

    def queue(self) -> Queue: ...
