"""Steps of requests are measured one by one, and nothing else changes for whoever is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from magnetar.core.testing.clock import FixedClock
from magnetar.wire.http.limits.pauses import Pauses


async def works(clock: FixedClock, *seconds: float) -> str:
    """So long in one go, then so long in the next."""
    for each in seconds:
        clock.forward(each)
        await trio.lowlevel.checkpoint()
    return "done"


async def test_the_longest_step_counts_not_the_sum() -> None:
    clock = FixedClock()
    pauses = Pauses(clock)
    assert await pauses.of(works(clock, 1, 3, 2)) == "done"
    assert pauses.longest_seconds == 3
    await pauses.of(works(clock, 2, 2))
    assert pauses.longest_seconds == 3


async def test_what_happens_while_it_waits_is_not_its_own() -> None:
    clock = FixedClock()
    pauses = Pauses(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pauses.of, works(clock, 1, 1))
        nursery.start_soon(works, clock, 50)
    assert pauses.longest_seconds == 1


async def test_errors_and_cancellation_go_through() -> None:
    clock = FixedClock()
    pauses = Pauses(clock)

    async def fails() -> None:
        clock.forward(4)
        raise LookupError("no")

    with pytest.raises(LookupError):
        await pauses.of(fails())
    assert pauses.longest_seconds == 4
    received = []

    async def sleeps() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            received.append("cancelled")
            raise

    with trio.CancelScope() as scope:
        scope.cancel()
        await pauses.of(sleeps())
    assert (received, scope.cancelled_caught) == (["cancelled"], True)


async def test_pieces_are_measured_as_they_are_made() -> None:
    clock = FixedClock()
    pauses = Pauses(clock)

    async def made() -> AsyncIterator[int]:
        for number in range(3):
            await works(clock, 1, 5)
            yield number

    assert [piece async for piece in pauses.pieces(made())] == [0, 1, 2]
    assert pauses.longest_seconds == 5
