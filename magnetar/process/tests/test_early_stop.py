"""A stop before there is anything to stop; `magnetar/tests/test_bookie_server.py` has processes."""

import trio
import trio.testing

from magnetar.process.early_stop import ended_by


async def test_a_stop_ends_what_has_not_begun() -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set, stop)
        async with ended_by(stop):
            await trio.sleep_forever()


async def _set(stop: trio.Event) -> None:
    stop.set()


async def test_what_has_begun_stops_by_itself() -> None:
    stop = trio.Event()
    async with ended_by(stop) as begun:
        begun()
        stop.set()
        await trio.testing.wait_all_tasks_blocked()
        ended = True
    assert ended


async def test_without_a_stop_it_just_ends() -> None:
    async with ended_by(trio.Event()):
        await trio.lowlevel.checkpoint()
