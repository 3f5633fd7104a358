"""Turns are those that others give; what computes without pause gives none."""

import trio

from magnetar.core.testing.turns import counted_turns


async def test_each_checkpoint_gives_one() -> None:
    async with counted_turns() as turns:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert 8 <= turns.count <= 11
        before = turns.count
        sum(range(1_000))
        assert turns.count == before
    after = turns.count
    await trio.lowlevel.checkpoint()
    assert turns.count == after
