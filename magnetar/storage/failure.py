"""The end of a process whose storage has failed for good."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from magnetar.core.kernel.errors import StorageFailed

log = logging.getLogger(__name__)


@asynccontextmanager
async def ended_by_failure(process: str) -> AsyncIterator[Callable[[str], None]]:
    """A block, and the function that ends it with `StorageFailed`; `process` is for the log.

    Everything that was acknowledged is safe, but what is acknowledged later might not be.
    """
    async with trio.open_nursery() as nursery:

        def fail(reason: str) -> None:
            log.critical("storage failed, this %s stops: %s", process, reason)
            nursery.start_soon(_raise, StorageFailed(reason))

        yield fail
        nursery.cancel_scope.cancel()


async def _raise(error: Exception) -> None:
    raise error
