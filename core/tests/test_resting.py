"""Who goes through many things rests when it is time, and misses none of them."""

import trio
from trio.testing import MockClock

from core.resting import WORK_SECONDS, Resting


class Counting:
    """A task that counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.turns += 1


async def test_all_in_order() -> None:
    assert [one async for one in Resting(range(1_000))] == list(range(1_000))
    assert [one async for one in Resting(())] == []


async def turns_meanwhile(clock: MockClock, seconds_each: float) -> int:
    """Of another task, while ten things take so long each."""
    other = Counting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.run)
        await trio.lowlevel.checkpoint()
        before = other.turns
        async for _ in Resting(range(10)):
            clock.jump(seconds_each)
        taken = other.turns - before
        nursery.cancel_scope.cancel()
    return taken


async def test_others_have_their_turn_when_it_is_time(mock_clock: MockClock) -> None:
    assert await turns_meanwhile(mock_clock, WORK_SECONDS) == 10


async def test_what_is_quick_is_done_at_once(mock_clock: MockClock) -> None:
    assert await turns_meanwhile(mock_clock, WORK_SECONDS / 100) == 0
