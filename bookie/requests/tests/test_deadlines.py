"""Calls at a time, on a clock that jumps."""

import trio

from magnetar.bookie.requests import deadlines as deadlines_module
from magnetar.bookie.requests.deadlines import Deadlines


async def test_calls_are_made_in_the_order_of_their_times(autojump_clock, nursery):
    deadlines, made = Deadlines(), []
    nursery.start_soon(deadlines.run)
    deadlines.call_in(5, lambda: made.append(("late", trio.current_time())))
    await trio.sleep(1)
    deadlines.call_in(1, lambda: made.append(("soon", trio.current_time())))
    cancelled = deadlines.call_in(2, lambda: made.append(("never", 0)))
    assert len(deadlines) == 3
    deadlines.cancel(cancelled)
    deadlines.cancel(cancelled)
    assert len(deadlines) == 2
    started = trio.current_time()
    await trio.sleep(10)
    assert [name for name, _ in made] == ["soon", "late"]
    assert [round(at - started) for _, at in made] == [1, 4]
    assert len(deadlines) == 0


async def test_cancelled_ones_do_not_pile_up(autojump_clock):
    deadlines = Deadlines()
    for _ in range(3 * deadlines_module.COMPACT_AT):
        deadlines.cancel(deadlines.call_in(60, lambda: None))
    assert len(deadlines._heap) <= 2 * deadlines_module.COMPACT_AT
