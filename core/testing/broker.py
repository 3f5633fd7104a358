"""A broker over fakes, with a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.cluster.ownership import ALONE, Ownership
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import Effective
from magnetar.core.security.access import Access
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.ledgers import MemoryLedgers


class Stores:
    """The stores of a broker, which survive it and can be passed to the next one."""

    def __init__(self, *, sync_at_once: bool = True) -> None:
        self.ledgers = MemoryLedgers(sync_at_once=sync_at_once)
        self.metadata = MemoryMetadata()
        self.clock = FixedClock()


@asynccontextmanager
async def running(
    stores: Stores | None = None,
    ownership: Ownership = ALONE,
    access: Access | None = None,
    **defaults: Any,
) -> AsyncIterator[Broker]:
    """A broker for the length of a block; the defaults are those of its policies.

    Ledgers have ten entries. There is no link, so the test calls `dispatch`.
    """
    stores = stores or Stores()
    settings = BrokerSettings(
        defaults=Effective(**defaults), roll=RollLimits(entries_max=10, age_ms_min=0)
    )
    broker = Broker(
        settings, stores.ledgers, stores.metadata, stores.clock, lambda: None, ownership
    )
    if access is not None:
        broker.guard(access)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        yield broker
        nursery.cancel_scope.cancel()
