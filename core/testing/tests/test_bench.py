"""The workbench itself: what it promises tests."""

import pytest

from magnetar.core.kernel.errors import Terminated
from magnetar.core.testing.bench import NO_AGE, Outcome, bench, stored


def test_told_once() -> None:
    log: list[object] = []
    outcome = Outcome(log, "a")
    outcome((1, 2))
    assert (outcome.result, outcome.times, log) == ((1, 2), 1, ["a"])
    with pytest.raises(AssertionError):
        outcome(None)


async def test_ledgers_roll_by_the_limit_and_stores_outlive_them() -> None:
    async with bench() as desk:
        ledger = await desk.ledger()
        for _ in range(NO_AGE.entries_max + 1):
            await stored(ledger, b"x")
        assert len(ledger.chain.segments) == 2
        assert (await desk.ledger()).chain.entries == NO_AGE.entries_max + 1


async def test_stored_says_so_when_it_is_not() -> None:
    async with bench() as desk:
        ledger = await desk.ledger()
        await ledger.terminate()
        with pytest.raises(AssertionError, match=Terminated.__name__):
            await stored(ledger, b"x")
