"""Dispatch and appends at the end of a sweep. `test_broker.py` has them with real topics."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.broker.sweep_work import DISPATCH_SECONDS_MAX, SweepWork
from magnetar.core.testing.clock import FixedClock


class Served:
    """A subscription, or a log, that notes when it is served."""

    def __init__(self, order: list[str], name: str, clock: FixedClock, seconds: float = 0) -> None:
        self.order, self.name, self.clock, self.seconds = order, name, clock, seconds
        self.fails = False
        self.more = False

    def dispatch(self) -> bool:
        self.order.append(self.name)
        self.clock.forward(self.seconds)
        if self.fails:
            raise ValueError("a mistake of ours")
        return self.more

    def schedule(self) -> None:
        self.order.append(f"{self.name} again")

    def disconnect_all(self) -> None:
        self.order.append(f"{self.name} off")

    def write(self) -> None:
        self.order.append(f"{self.name} written")


class Work:
    def __init__(self, *, gathers: bool = True) -> None:
        self.clock = FixedClock()
        self.order: list[str] = []
        self.work = SweepWork(self.clock, lambda: self.order.append("sweep"), gathers=gathers)

    def one(self, name: str, seconds: float = 0) -> Any:
        return Served(self.order, name, self.clock, seconds)


def test_who_is_not_reached_in_time_is_first_in_the_next_sweep() -> None:
    made = Work()
    slow = [made.one(name, DISPATCH_SECONDS_MAX * 0.6) for name in "abc"]
    for one in slow:
        made.work.add(one)
    made.work.dispatch()
    made.work.add(slow[0])
    made.work.dispatch()
    made.work.dispatch()
    asked = ["sweep"] * 3
    assert made.order == [*asked, "a", "b", "sweep", "sweep", "c", "a"]


def test_who_has_more_is_scheduled_and_who_fails_is_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Work()
    one, two = made.one("a"), made.one("b")
    one.fails = two.more = True
    made.work.add(one)
    made.work.add(two)
    made.work.dispatch()
    assert made.order[2:] == ["a", "a off", "b", "b again"]
    assert "a mistake of ours" in caplog.text


def test_appends_are_written_at_the_end_of_the_sweep() -> None:
    made = Work()
    made.work.gather(made.one("a"))
    made.work.gather(made.one("b"))
    made.work.store()
    made.work.store()
    assert made.order == ["sweep", "sweep", "a written", "b written"]


def test_or_at_once() -> None:
    made = Work(gathers=False)
    made.work.gather(made.one("a"))
    assert made.order == ["a written"]
