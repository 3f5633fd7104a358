"""What clients of asyncio leave on their loop: tasks that connect again, and open transports.

The garbage collector would report a transport in a later test, which then fails.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def end_all() -> None:
    """End all other tasks of this loop, and close all its transports."""
    loop: Any = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for transport in list(loop._transports.values()):  # closed ones too, as long as they are known
        transport.abort()
    await asyncio.sleep(0)  # they are closed in the next turn
