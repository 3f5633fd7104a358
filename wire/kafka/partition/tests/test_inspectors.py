"""Whose batch is looked through next."""

from __future__ import annotations

import threading
from collections.abc import Callable

import trio
import trio.testing

from magnetar.wire.kafka.partition.inspectors import Account, Inspectors


class Stage:
    """Calls that end when they are told to; `done` has their names in order."""

    def __init__(self, nursery: trio.Nursery, clock: Ticking) -> None:
        self.inspectors = Inspectors(clock, 1)
        self.done: list[str] = []
        self._clock = clock
        self._nursery = nursery

    async def asks(self, account: Account, name: str, seconds: float = 1.0, size: int = 1) -> None:
        def call() -> None:
            self._clock.seconds += seconds
            self.done.append(name)

        async def run() -> None:
            await self.inspectors.run(account, size, call)

        self._nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()


class Ticking:
    """Time is what calls take."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return int(1000 * self.seconds)


def holding() -> tuple[Callable[[], None], threading.Event]:
    gate = threading.Event()

    def hold() -> None:
        gate.wait(10)

    return hold, gate


async def test_who_comes_now_and_then_goes_before_who_sends_much() -> None:
    clock = Ticking()
    async with trio.open_nursery() as nursery:
        stage = Stage(nursery, clock)
        greedy, modest, hold = Account(), Account(), holding()
        await stage.inspectors.run(greedy, 1, lambda: setattr(clock, "seconds", 5.0))
        nursery.start_soon(stage.inspectors.run, Account(), 1, hold[0])
        await trio.testing.wait_all_tasks_blocked()
        await stage.asks(greedy, "greedy")
        await stage.asks(modest, "modest")
        await stage.asks(Account(), "new")
        hold[1].set()
    assert stage.done == ["modest", "new", "greedy"]


async def test_of_two_the_smaller_one() -> None:
    async with trio.open_nursery() as nursery:
        stage = Stage(nursery, Ticking())
        hold = holding()
        nursery.start_soon(stage.inspectors.run, Account(), 1, hold[0])
        await trio.testing.wait_all_tasks_blocked()
        await stage.asks(Account(), "large", size=1_000_000)
        await stage.asks(Account(), "small", size=10)
        hold[1].set()
    assert stage.done == ["small", "large"]


async def test_who_goes_away_leaves_the_turn_to_others() -> None:
    async with trio.open_nursery() as nursery:
        stage = Stage(nursery, Ticking())
        hold = holding()
        nursery.start_soon(stage.inspectors.run, Account(), 1, hold[0])
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await stage.inspectors.run(Account(), 1, lambda: None)
        await stage.asks(Account(), "stays")
        hold[1].set()
    await stage.inspectors.run(Account(), 1, lambda: stage.done.append("later"))
    assert stage.done == ["stays", "later"]
