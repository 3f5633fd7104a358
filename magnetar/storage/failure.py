"""The end of a process whose storage has failed for good."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import trio

from magnetar.core.kernel.errors import BrokerError

log = logging.getLogger(__name__)


class StorageEnded(Exception):
    """The process ends, because its storage has failed. The log has said so."""


def is_told(error: BaseException) -> bool:
    """Whether an error is the end of storage, alone or with what came of it: then there is nothing
    to add to the log.
    """
    leaves = list(leaves_of(error))
    ended = any(isinstance(leaf, StorageEnded) for leaf in leaves)
    return ended and all(isinstance(leaf, StorageEnded | BrokerError) for leaf in leaves)


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """What nurseries wrapped in groups, in order."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves_of(each)
    else:
        yield error


@asynccontextmanager
async def ended_by_failure(process: str) -> AsyncIterator[Callable[[str], None]]:
    """A block, and the function that ends it with `StorageEnded`; `process` is for the log.

    Everything that was acknowledged is safe, but what is acknowledged later might not be.
    """
    async with trio.open_nursery() as nursery:

        def fail(reason: str) -> None:
            log.critical("storage failed, this %s stops: %s", process, reason)
            nursery.start_soon(_raise, StorageEnded(reason))

        yield fail
        nursery.cancel_scope.cancel()


async def _raise(error: Exception) -> None:
    raise error
