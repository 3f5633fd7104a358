"""Steps of carrying out a decision, each repeated until it succeeds.

The outcome is decided, and perhaps reported, so there is no giving up, whatever the error. Only
another coordinator ends the attempts: the transaction is its own then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.transactions.slot import TransactionSlot

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 5.0
STEPS_AT_ONCE: Final = 100
"""Logs of one transaction that are marked concurrently."""

Step = Callable[[], Awaitable[object]]
"""It may be repeated."""


async def insist_on_all(slot: TransactionSlot, steps: Sequence[Step]) -> None:
    """Carry out all of them, as many at once as may be."""
    if len(steps) == 1:
        await insist(slot, steps[0])
        return
    left = iter(steps)

    async def work() -> None:
        for step in left:
            await insist(slot, step)

    async with trio.open_nursery() as nursery:
        for _ in steps[:STEPS_AT_ONCE][1:]:
            nursery.start_soon(work)
        await work()


async def insist(slot: TransactionSlot, step: Step) -> None:
    """Try again until it succeeds, or until another coordinator has the transaction."""
    pause = RETRY_SECONDS
    while not slot.lost:
        try:
            await step()
        except BrokerError as error:
            if slot.lost:
                return
            log.warning("transaction %s: tried again, %s", slot.name, error)
            await trio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)
        else:
            return
