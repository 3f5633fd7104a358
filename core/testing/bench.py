"""A test bench for topics and ledgers: fakes connected as the broker connects the real parts.

Spawned tasks run in the nursery of the test. Cursors and subscriptions that have work are gathered
in lists, so that a test decides when it is done.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.tail_cache import Slice, TailCache
from magnetar.core.ledger.storage import Storage, UnsavedCursor
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription

if TYPE_CHECKING:
    import pytest

NAME = "public/default/persistent/t"
NO_AGE = RollLimits(entries_max=3, age_ms_min=0)
"""Ledgers of three entries, so that a test has several."""


class Bench:
    """See the module's docstring; use `bench()`."""

    def __init__(self, nursery: trio.Nursery, roll: RollLimits, *, sync_at_once: bool) -> None:
        self.ledgers = MemoryLedgers(sync_at_once=sync_at_once)
        self.metadata = MemoryMetadata()
        self.clock = FixedClock()
        self.cache = TailCache(1024 * 1024)
        self.dirty_cursors: list[UnsavedCursor] = []
        self.dirty: list[PersistentSubscription] = []
        self.storage = Storage(
            self.ledgers,
            self.metadata,
            self.cache,
            self.clock,
            roll,
            nursery.start_soon,
            self.dirty_cursors.append,
        )
        self.env = Environment(self.storage, self.clock, nursery.start_soon, self.dirty.append)

    async def ledger(self, name: str = NAME) -> ManagedLedger:
        """Open a managed ledger from the stores."""
        ledger = ManagedLedger(self.storage, name, lambda: None)
        await ledger.open()
        return ledger

    async def topic(self, name: str = "t", **policies: Any) -> PersistentTopic:
        """Load a topic from the stores."""
        requested = effective(Effective(**policies), NamespacePolicies(), TopicPolicies())
        topic = PersistentTopic(self.env, TopicName.parse(name), requested)
        await topic.load()
        return topic

    async def unstored(
        self, name: str = "non-persistent://public/default/t", **policies: Any
    ) -> NonPersistentTopic:
        """Make a non-persistent topic."""
        requested = effective(Effective(**policies), NamespacePolicies(), TopicPolicies())
        topic = NonPersistentTopic(self.env, TopicName.parse(name), requested)
        await topic.load()
        return topic

    async def published(self, topic: PersistentTopic, *payloads: bytes) -> list[Position]:
        """Publish each payload as a run of its own; returns their positions."""
        return await stored(topic.ledger, *payloads)

    async def flush_cursors(self) -> None:
        """Store cursors, as the broker does periodically."""
        dirty, self.dirty_cursors[:] = dict.fromkeys(self.dirty_cursors), []
        for cursor in dirty:
            cursor.flush_if_due()
        await settled()

    async def dispatch(self) -> None:
        """Run the link's end of a sweep until nothing is left to do."""
        await settled()
        while self.dirty:
            dirty, self.dirty[:] = list(self.dirty), []
            for subscription in dirty:
                if subscription.dispatch():
                    subscription.schedule()
            await settled()


@asynccontextmanager
async def bench(roll: RollLimits = NO_AGE, *, sync_at_once: bool = True) -> AsyncIterator[Bench]:
    """Fakes for the length of a block."""
    async with trio.open_nursery() as nursery:
        yield Bench(nursery, roll, sync_at_once=sync_at_once)
        nursery.cancel_scope.cancel()


def log_reads(monkeypatch: pytest.MonkeyPatch) -> list[Position]:
    """Where logs are read from storage, from now on."""
    places: list[Position] = []
    read = ManagedLedger.read

    async def reading(self: ManagedLedger, position: Position, *limits: int) -> Slice:
        places.append(position)
        return await read(self, position, *limits)

    monkeypatch.setattr(ManagedLedger, "read", reading)
    return places


async def settled() -> None:
    """Wait until every task is blocked."""
    await trio.testing.wait_all_tasks_blocked()


class Outcome:
    """A `done` callback that records its result, and that it is called once."""

    def __init__(self, log: list[object] | None = None, name: object = None) -> None:
        self.result: Position | BrokerError | None = None
        self.times = 0
        self._log = log
        self._name = name

    def __call__(self, result: Position | BrokerError | None) -> None:
        assert not self.times, "told twice"
        self.times += 1
        self.result = result
        if self._log is not None:
            self._log.append(self._name)


class IndexedOutcome(Outcome):
    """Also records the index of the first message of what was stored."""

    def __init__(self, ledger: ManagedLedger) -> None:
        super().__init__()
        self.index = -1
        self._ledger = ledger

    def __call__(self, result: Position | BrokerError | None) -> None:
        super().__call__(result)
        if isinstance(result, tuple):
            self.index = self._ledger.delivered_index(result)


async def stored(ledger: ManagedLedger, *payloads: bytes) -> list[Position]:
    """Append each payload as a run of its own; returns their positions when all are stored."""
    response = [Outcome() for _ in payloads]
    for payload, done in zip(payloads, response, strict=True):
        ledger.append([payload], None, done)
    await settled()
    places = [done.result for done in response]
    assert all(isinstance(place, tuple) for place in places), places
    return places  # type: ignore[return-value]  # as just asserted
