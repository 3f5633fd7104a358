"""Takes a lease that a former process may still have: one that was killed has it until its session
times out.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import trio

from magnetar.bookie.cluster.changes import Changes
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
    """Take it as soon as nobody has it; `AlreadyExists` if somebody still has `wait_seconds` after
    that was seen first. A store that does not answer is its own error: it says nothing of others,
    and sessions last longer by the time in which it was away.

    `held` is called each time before it waits for a change.
    """
    deadline = math.inf
    with Changes(store, path) as changes:
        while True:
            changes.begin()
            try:
                await store.lease(path, value, lost)
                return
            except AlreadyExists:
                deadline = min(deadline, trio.current_time() + wait_seconds)
                if trio.current_time() >= deadline:
                    raise
            await held()
            with trio.move_on_at(deadline):
                await changes.wait()
