"""Threads that run one at a time: the verified fake of the port `Threads`.

A thread runs while the loop is idle, until it ends or waits; then the loop goes on. `choose`
selects the next of the ready threads, so the same choices repeat the same run. They are real
threads, since they run blocking code, but none runs concurrently with another or with the loop.
Timeouts follow the loop's clock.

    async with open_stepped_threads(choose) as threads: ...
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import Empty
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

import trio
import trio.testing

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
Choose = Callable[[int], int]
"""Returns a number below its argument."""


class SteppedThread:
    """One thread, which has the turn or waits for it."""

    def __init__(self, threads: SteppedThreads, call: Callable[[], object], name: str) -> None:
        self.name = name
        self.over = False
        self.error: BaseException | None = None
        self.ready: Callable[[], bool] = lambda: True
        """Whether it can go on."""
        self.deadline = float("inf")
        self._threads = threads
        self._call = call
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._turn.acquire()
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - raised where the threads are run
            self.error = error
        self.over = True
        self._back.release()

    def step(self) -> None:
        """Run the thread until it waits or ends; called by the loop."""
        before, self._threads.current = self._threads.current, self
        self._turn.release()
        self._back.acquire()
        self._threads.current = before
        if self.over:
            self._threads.remove(self)

    def wait(self, ready: Callable[[], bool], deadline: float = float("inf")) -> None:
        """Wait until `ready`, or until the deadline; called by the thread."""
        self.ready, self.deadline = ready, deadline
        self._back.release()
        self._turn.acquire()
        self.ready, self.deadline = (lambda: True), float("inf")

    def join(self) -> None:
        current = self._threads.current
        if current is None:
            while not self.over:
                assert self.ready(), f"the loop waits for {self.name}, which waits for the loop"
                self.step()
        else:
            current.wait(lambda: self.over)


class SteppedQueue:
    """A `Queue`."""

    def __init__(self, threads: SteppedThreads) -> None:
        self._threads = threads
        self._items: deque[Any] = deque()

    def put(self, item: Any, /) -> None:
        self._items.append(item)
        self._threads.wake()

    def get(self, *, timeout: float | None = None) -> Any:
        current = self._threads.current
        assert current is not None, "the loop never waits for a queue"
        deadline = float("inf") if timeout is None else self._threads.now() + timeout
        if not self._items:
            current.wait(lambda: bool(self._items), deadline)
        if not self._items:
            raise Empty
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


class Working(Protocol):
    """Threads of a fake, which make one call."""

    async def work(
        self,
        call: Callable[[Unpack[Arguments]], Result],
        *arguments: *Arguments,
        abandon: bool,
    ) -> Result: ...


class FakeWorkers:
    """`Workers` over the threads of a fake."""

    def __init__(self, threads: Working, count: int, *, abandon: bool) -> None:
        self._threads = threads
        self._limiter = trio.CapacityLimiter(count)
        self._abandon = abandon

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        async with self._limiter:
            return await self._threads.work(call, *arguments, abandon=self._abandon)


class SteppedThreads:
    """See the module's docstring."""

    def __init__(self, choose: Choose) -> None:
        self.current: SteppedThread | None = None
        """The running thread; None for the loop."""
        self._choose = choose
        self._threads: list[SteppedThread] = []
        self._token = trio.lowlevel.current_trio_token()
        self._clock = trio.lowlevel.current_clock()
        self._parked = trio.lowlevel.ParkingLot()

    def now(self) -> float:
        return self._clock.current_time()

    def wake(self) -> None:
        """Check again which threads are ready."""
        self._token.run_sync_soon(self._parked.unpark_all, idempotent=True)

    def remove(self, thread: SteppedThread) -> None:
        self._threads.remove(thread)
        if thread.error is not None and not isinstance(thread.error, Exception):
            raise thread.error

    async def turn(self) -> None:
        """Run threads whenever the loop is idle, until cancelled."""
        while True:
            await trio.testing.wait_all_tasks_blocked()
            now = self.now()
            ready = [t for t in self._threads if t.ready() or t.deadline <= now]
            if ready:
                ready[self._choose(len(ready))].step()
                continue
            deadline = min((thread.deadline for thread in self._threads), default=float("inf"))
            with trio.move_on_at(deadline):
                await self._parked.park()

    # -- the port -----------------------------------------------------------------------------

    def start(self, call: Callable[[], object], name: str) -> SteppedThread:
        thread = SteppedThread(self, call, name)
        self._threads.append(thread)
        self.wake()
        return thread

    def workers(self, count: int, *, abandon: bool = False) -> FakeWorkers:
        return FakeWorkers(self, count, abandon=abandon)

    async def run(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        return await self.work(call, *arguments, abandon=False)

    async def work(
        self,
        call: Callable[[Unpack[Arguments]], Result],
        *arguments: *Arguments,
        abandon: bool,
    ) -> Result:
        """Start a thread for the call, and wait for its result."""
        await trio.lowlevel.checkpoint_if_cancelled()
        results: list[Result] = []
        over = trio.Event()

        def work() -> None:
            try:
                results.append(call(*arguments))
            finally:
                self._token.run_sync_soon(over.set)

        thread = self.start(work, "worker")
        with trio.CancelScope(shield=not abandon):
            await over.wait()
        if thread.error is not None:
            raise thread.error
        return results[0]

    def call_soon(
        self, call: Callable[[Unpack[Arguments]], object], *arguments: *Arguments
    ) -> None:
        self._token.run_sync_soon(call, *arguments)

    def call_and_wait(
        self, call: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments
    ) -> Result:
        assert self.current is not None, "the loop makes its calls itself"
        results: list[Result] = []

        def work() -> None:
            results.append(call(*arguments))
            self.wake()

        self._token.run_sync_soon(work)
        self.current.wait(lambda: bool(results))
        return results[0]

    def pause(self, seconds: float) -> None:
        if self.current is not None:
            self.current.wait(lambda: True)

    def lock(self) -> SteppedLock:
        return SteppedLock(self)

    def queue(self) -> SteppedQueue:
        return SteppedQueue(self)


class SteppedLock:
    """A lock between threads."""

    def __init__(self, threads: SteppedThreads) -> None:
        self._threads = threads
        self._held = False

    def __enter__(self) -> None:
        current = self._threads.current
        if self._held and current is not None:
            current.wait(lambda: not self._held)
        assert not self._held, "the loop never waits for a lock"
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False
        self._threads.wake()


@asynccontextmanager
async def open_stepped_threads(choose: Choose = lambda count: 0) -> AsyncIterator[SteppedThreads]:
    """Run threads until the end of the block."""
    async with trio.open_nursery() as nursery:
        threads = SteppedThreads(choose)
        nursery.start_soon(threads.turn)
        yield threads
        nursery.cancel_scope.cancel()
