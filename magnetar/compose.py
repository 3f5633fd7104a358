"""Provisional: opens the doors and waits. The composition root takes its place."""

from collections.abc import Callable

import trio

from magnetar.doors import address, open_doors
from magnetar.ready import ReadyReport
from magnetar.settings import Settings


async def serve(settings: Settings, ready: Callable[[ReadyReport], None], stop: trio.Event) -> None:
    doors = open_doors(settings)
    try:
        ready(ReadyReport({name: address(door) for name, door in doors.items()}))
        await stop.wait()
    finally:
        for door in doors.values():
            door.close()
