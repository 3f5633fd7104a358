"""The task that settles for work from outside a sweep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from magnetar.core.link.settler import Settler


class Settling:
    """Counts how often it settles; `again` is called by each."""

    def __init__(self) -> None:
        self.times = 0
        self.settler = Settler(self.settle)
        self.again = 0

    def settle(self) -> None:
        self.settler.is_scheduled = False
        self.times += 1
        if self.again:
            self.again -= 1
            self.settler.schedule()


def test_without_a_loop_nothing_is_scheduled() -> None:
    settling = Settling()
    settling.settler.schedule()
    assert not settling.settler.is_scheduled


@asynccontextmanager
async def waiting() -> AsyncIterator[Settling]:
    """With the task, which waits."""
    settling = Settling()
    settling.settler.begin()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(settling.settler.run)
        await trio.testing.wait_all_tasks_blocked()
        yield settling
        nursery.cancel_scope.cancel()


async def test_by_the_task_that_waits() -> None:
    async with waiting() as settling:
        settling.settler.schedule()
        assert settling.settler.is_scheduled
        assert settling.times == 0
        await trio.testing.wait_all_tasks_blocked()
        assert settling.times == 1
        settling.again = 2
        settling.settler.schedule()
        await trio.testing.wait_all_tasks_blocked()
        assert settling.times == 4


async def test_what_was_settled_meanwhile_is_not_settled_again() -> None:
    async with waiting() as settling:
        settling.settler.schedule()
        settling.settle()
        await trio.testing.wait_all_tasks_blocked()
        assert settling.times == 1


async def test_before_the_task_runs_and_after_it_has_ended() -> None:
    settling = Settling()
    settling.settler.begin()
    settling.settler.schedule()
    await trio.testing.wait_all_tasks_blocked()
    assert settling.times == 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(settling.settler.run)
        await trio.testing.wait_all_tasks_blocked()
        settling.settler.schedule()
        nursery.cancel_scope.cancel()  # before it has settled
    await trio.testing.wait_all_tasks_blocked()
    assert settling.times == 2
    settling.settler.schedule()
    await trio.testing.wait_all_tasks_blocked()
    assert settling.times == 3
