"""Threads: what blocks runs on one of them, and reports to the loop.

Everything that runs beside the loop is started here, and so is everything by which threads wait for
each other. A simulator that implements this port therefore decides who runs when.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Thread(Protocol):
    """One that was started."""

    def join(self) -> None:
        """Block until it is over."""
        ...


class Queue(Protocol):
    """What one thread puts, another gets, in order. `queue.SimpleQueue` is one."""

    def put(self, item: Any, /) -> None:
        """Any thread, the loop's too: never blocks."""
        ...

    def get(self, *, timeout: float | None = None) -> Any:
        """Block until there is something; `queue.Empty` after `timeout` seconds."""
        ...

    def empty(self) -> bool: ...


class Workers(Protocol):
    """A limited number of threads that do one call each."""

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """Wait for a free thread, then for the call; what it raises is raised here."""
        ...


class Threads(Protocol):
    """Starts threads, and gives them what they need to wait for each other."""

    def start(self, call: Callable[[], None], name: str) -> Thread:
        """A thread for this call alone. It does not keep the process alive."""
        ...

    def workers(self, count: int, *, abandon: bool = False) -> Workers:
        """So many at a time. `abandon`: cancelled, `run` leaves the call to end unheard."""
        ...

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """On one of the workers that the whole process shares."""
        ...

    def call_soon(
        self, call: Callable[[Unpack[Arguments]], object], *arguments: *Arguments
    ) -> None:
        """From any thread: have the loop make the call. Nothing happens once the loop is over."""
        ...

    def call_and_wait(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        """From a worker: have the loop make the call, and wait for what it returns."""
        ...

    def pause(self, seconds: float) -> None:
        """From any thread but the loop's: let others run."""
        ...

    def lock(self) -> AbstractContextManager[object]:
        """A lock between threads, held only for what is quick."""
        ...

    def queue(self) -> Queue: ...
