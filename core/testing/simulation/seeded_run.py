"""Runs of trio that a seed repeats exactly, in virtual time.

    scheduling   trio shuffles the tasks that are ready; here the seed does
    time         jumps to the next deadline, or call of the timeline, when all tasks wait
    chance       each part of a simulation has its own, by name: one that asks more often does
                 not change what the others get
    trace        what happened, line by line, with a fingerprint

The switch for the scheduling is private to trio; pytest-trio sets it for Hypothesis by the same
names (`trio._core._run._hypothesis_plugin_setup`). So is how a clock is told that all tasks wait
(`MockClock` of `trio.testing` says so).

A run in which nothing can happen any more does not end by itself: give it a deadline.

Invariant: the same seed gives the same trace, in any process. So nothing in a simulation may
depend on addresses of objects, on the order of a set of strings, or on the system.
"""

from __future__ import annotations

import math
import random  # noqa: TID251 - here chance begins
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, TypeVar

import trio
import trio.testing
from trio._core import _run

from magnetar.core.testing.simulation.timeline import Timeline

Result = TypeVar("Result")
START_MS: Final = 1_700_000_000_000


class Trace:
    """What happened in a run, in virtual time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._digest = blake2b(digest_size=16)

    def note(self, text: str) -> None:
        line = f"{trio.current_time():10.6f} {text}"
        self.lines.append(line)
        self._digest.update(line.encode())

    @property
    def fingerprint(self) -> str:
        """Of everything noted so far."""
        return self._digest.hexdigest()


class VirtualClock:
    """A `Clock` that shows the virtual time of a run."""

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_ms(self) -> int:
        return START_MS + int(1000 * trio.current_time())


def _jumping_clock(timeline: Timeline) -> trio.testing.MockClock:
    """Trio's clock, which also makes the calls of a timeline. (Trio lets no other class jump.)"""
    clock: Any = trio.testing.MockClock(autojump_threshold=0)

    def autojump() -> None:
        """All tasks wait."""
        deadlines = _run.GLOBAL_RUN_CONTEXT.runner.deadlines
        at = min(timeline.next_at, deadlines.next_deadline())
        if at < math.inf:
            clock._virtual_base = max(clock._virtual_base, at)
            timeline.make_calls(clock._virtual_base)

    vars(clock).update(_real_clock=lambda: 0.0, _autojump=autojump)
    found: trio.testing.MockClock = clock
    return found


class SeededRun:
    """What the parts of one run share."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.timeline = Timeline()
        self.trace = Trace()
        self.clock = VirtualClock()

    def chance(self, name: str) -> random.Random:
        """The chance of one part."""
        return random.Random(f"{self.seed} {name}")


def simulate(main: Callable[[SeededRun], Awaitable[Result]], seed: int) -> Result:
    """Run `main` to its end."""
    run = SeededRun(seed)
    with _seeded_scheduling(seed):
        return trio.run(main, run, clock=_jumping_clock(run.timeline))


@contextmanager
def _seeded_scheduling(seed: int) -> Iterator[None]:
    scheduler: Any = _run
    allowed, state = scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        scheduler._r.setstate(state)
