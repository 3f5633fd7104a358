"""Turns come in the order in which they were taken."""

import trio

from magnetar.core.testing.bench import settled
from magnetar.wire.kafka.groups.task_order import TaskOrder


async def test_order() -> None:
    turns, done = TaskOrder(), []
    taken = [(number, turns.take("a")) for number in range(20)]

    async def work(number: int, turn: object) -> None:
        async with turn:
            await trio.lowlevel.checkpoint()
            done.append(number)

    async with trio.open_nursery() as nursery:
        for number, turn in reversed(taken):
            nursery.start_soon(work, number, turn)
    assert done == list(range(20))


async def test_keys_do_not_wait_for_each_other() -> None:
    turns = TaskOrder()
    async with turns.take("a"):
        async with turns.take("b"):
            pass
        second, entered = turns.take("a"), []

        async def wait() -> None:
            async with second:
                entered.append(True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await settled()
            assert not entered
            nursery.cancel_scope.cancel()
    async with turns.take("a"):
        pass
    assert turns._last == {}
