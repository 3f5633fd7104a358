"""Tasks of trio that are ready to run."""

import trio
import trio.testing

from magnetar.core.link.other_tasks import OtherTasks


async def test_tasks_are_ready_until_they_wait() -> None:
    others = OtherTasks()
    event = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(event.wait)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(others)
        assert others.ready == 0
        nursery.start_soon(event.wait)
        assert others.ready == 1
        await trio.testing.wait_all_tasks_blocked()
        assert others.ready == 0
        event.set()
        assert others.ready == 2
    trio.lowlevel.remove_instrument(others)


async def test_who_was_ready_before_is_not_counted() -> None:
    others = OtherTasks()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        trio.lowlevel.add_instrument(others)
        await trio.testing.wait_all_tasks_blocked()
        assert others.ready == 0
        nursery.start_soon(trio.lowlevel.checkpoint)
        assert others.ready == 1
    trio.lowlevel.remove_instrument(others)
