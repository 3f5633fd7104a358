"""Who goes through many things rests when it is time, and misses none of them."""

import trio
from trio.testing import MockClock

from magnetar.core.kernel.cooperation import WORK_SECONDS, Cooperative


class StepsOfThisTask(trio.abc.Instrument):
    """How often the loop came back to this task.

    Turns of another task beside it would not do: trio shuffles who is first in a round.
    """

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self.steps = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += task is self._task


async def test_all_in_order() -> None:
    assert [one async for one in Cooperative(range(1_000))] == list(range(1_000))
    assert [one async for one in Cooperative(())] == []


async def rests(clock: MockClock, seconds_each: float) -> int:
    """While ten things take so long each."""
    counted = StepsOfThisTask()
    trio.lowlevel.add_instrument(counted)
    async for _ in Cooperative(range(10)):
        clock.jump(seconds_each)
    return counted.steps


async def test_others_have_their_turn_when_it_is_time(mock_clock: MockClock) -> None:
    assert await rests(mock_clock, WORK_SECONDS) == 10


async def test_what_is_quick_is_done_at_once(mock_clock: MockClock) -> None:
    assert await rests(mock_clock, WORK_SECONDS / 100) == 0
