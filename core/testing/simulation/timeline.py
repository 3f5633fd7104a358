"""Plain calls at virtual times; and hosts, which can be frozen.

A simulated message or disk access is a call here, not a task: a run has many thousands of them. The
clock of a seeded run makes them (`seeded_run.py`), which costs a third of what a task does that
waits for each; under another clock `run` is that task.

Invariant: calls are made in the order of their times, and those of one time in the order in which
they were asked for. What is asked of a frozen host is done when it goes on, in the same order.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TypeVarTuple, Unpack

import trio

Arguments = TypeVarTuple("Arguments")
PlainCall = Callable[[], object]


class Timeline:
    """See the module's docstring."""

    def __init__(self, failed: Callable[[Exception], None] | None = None) -> None:
        """`failed` is told of what a call raises; without it, `run` raises that."""
        self.failed = failed
        self._heap: list[tuple[float, int, PlainCall]] = []
        self._numbers = count()
        self._hosts: list[HostTimeline] = []
        self._sooner = trio.Event()

    def call_in(
        self,
        seconds: float,
        call: Callable[[Unpack[Arguments]], object],
        *arguments: *Arguments,
    ) -> None:
        """Make a call after that time, and never at once."""
        at = trio.current_time() + seconds
        if not self._heap or at < self._heap[0][0]:
            self._sooner.set()
        made: PlainCall = partial(call, *arguments)
        heapq.heappush(self._heap, (at, next(self._numbers), made))

    def host(self) -> HostTimeline:
        """One more host."""
        host = HostTimeline(self)
        self._hosts.append(host)
        return host

    def thaw_all(self) -> None:
        """Let all hosts go on."""
        for host in self._hosts:
            host.thaw()

    @property
    def next_at(self) -> float:
        """When the next call is due."""
        return self._heap[0][0] if self._heap else math.inf

    def make_calls(self, now: float) -> None:
        """Make the calls that are due."""
        while self._heap and self._heap[0][0] <= now:
            call = heapq.heappop(self._heap)[2]
            if self.failed is None:
                call()
                continue
            try:
                call()
            except Exception as error:  # noqa: BLE001 - whoever waits for a later call must not
                self.failed(error)  # wait for ever: the run ends in order

    async def run(self) -> None:
        """Make the calls, until cancelled."""
        while True:
            self._sooner = trio.Event()
            with trio.move_on_at(self.next_at):
                await self._sooner.wait()
            self.make_calls(trio.current_time())


class HostTimeline:
    """The calls on one host; see the module's docstring."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._frozen = False
        self._kept: deque[PlainCall] = deque()

    def call_in(
        self,
        seconds: float,
        call: Callable[[Unpack[Arguments]], object],
        *arguments: *Arguments,
    ) -> None:
        """Make a call after that time, or when the host goes on."""
        self._timeline.call_in(seconds, self._due, partial(call, *arguments))

    def _due(self, call: PlainCall) -> None:
        if self._frozen or self._kept:
            self._kept.append(call)
        else:
            call()

    async def sleep(self, seconds: float) -> None:
        """Wait that time, and longer while the host is frozen."""
        over = trio.Event()
        self.call_in(seconds, over.set)
        await over.wait()

    @property
    def is_frozen(self) -> bool:
        return self._frozen

    def freeze(self) -> None:
        """Do nothing until `thaw`, as after SIGSTOP."""
        self._frozen = True

    def thaw(self) -> None:
        """Go on."""
        self._frozen = False
        while self._kept and not self._frozen:
            self._kept.popleft()()
