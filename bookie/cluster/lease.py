"""Takes a lease that a former process may still have: one that was killed has it until its session
times out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.metadata_store import MetadataStore


async def take_lease(
    store: MetadataStore,
    path: str,
    value: bytes,
    lost: Callable[[], None],
    *,
    wait_seconds: float,
    held: Callable[[], Awaitable[None]],
) -> None:
    """Take it as soon as nobody has it; `AlreadyExists` if somebody still has after that time.

    `held` is called each time before it waits for a change. It waits by a watch that is older than
    the attempt, so that no end of the former lease is missed.
    """
    with trio.move_on_after(wait_seconds):
        while True:
            changed = trio.Event()
            end = store.watch(path, partial(_set, changed))
            try:
                await store.lease(path, value, lost)
                return
            except AlreadyExists:
                await held()
                await changed.wait()
            finally:
                end()
    raise AlreadyExists(f"{path} is held")


def _set(event: trio.Event, _path: str) -> None:
    event.set()
