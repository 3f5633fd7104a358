"""A log that is compacted while another broker takes it over, at each step of the work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.compaction.tests.histories import batch, messages, wrapped
from magnetar.core.compaction.tests.last_values import values as compacted_values
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import Compaction, Retention
from magnetar.core.testing.bench import Outcome, settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.topic.persistent_topic import PersistentTopic

T = TopicName.parse("t")
STEPS_MAX = 50
"""More calls to the stores than one compaction makes."""


async def loaded(broker: Broker) -> PersistentTopic:
    topic = await broker.topic(T)
    assert isinstance(topic, PersistentTopic)
    return topic


async def published(topic: PersistentTopic, number: int) -> bool:
    """A message with one of fifteen keys; whether it is stored."""
    done = Outcome()
    topic.publish([wrapped(batch([(b"%d" % (number % 15), b"%d" % number)]))], [1], done)
    await settled()
    return isinstance(done.result, tuple)


async def values(topic: PersistentTopic) -> dict[bytes, bytes | None]:
    """The last value of each key, as a reader of the whole log sees it."""
    return {one.key: one.value for one in await messages(topic.ledger)}


class Calls:
    """Counts the calls that change the stores; before one of them, another owner comes."""

    def __init__(self, at: int, takeover: Callable[[], Awaitable[None]]) -> None:
        self.count = 0
        self._at = at
        self._takeover = takeover
        self._under_way = False

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped_call(*args: Any) -> Any:
            if not self._under_way:
                self.count += 1
                if self.count == self._at:
                    self._under_way = True
                    await self._takeover()
                    self._under_way = False
            return await call(*args)

        return wrapped_call


async def compacted(writes: bool, at: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Two brokers, one of which compacts; the other one comes before that call of its."""
    stores = Stores()
    async with running(stores) as one, running(stores) as other:
        policies = TopicPolicies(retention=Retention(-1, -1), compaction=Compaction())
        await one.catalog.set_topic_policies(T, policies)
        ours = await loaded(one)
        await ours.ledger.set_property(MIXED, "")
        for number in range(25):
            assert await published(ours, number)
        await ours.ledger.roll()
        expected = await values(ours)

        async def takeover() -> None:
            theirs = await loaded(other)
            if writes:
                assert await published(theirs, 25)
                expected[b"10"] = b"25"

        calls = Calls(at, takeover)
        with monkeypatch.context() as patched:
            for store, name in (
                (stores.metadata, "put"),
                (stores.ledgers, "create"),
                (stores.ledgers, "delete"),
            ):
                patched.setattr(store, name, calls.counted(getattr(store, name)))
            try:
                await one.housekeeping.compactor.compact(ours)
            except BrokerError:
                assert calls.count >= at, "only the other owner makes it fail"
            await settled()
        theirs = await loaded(other)
        if not await published(theirs, 26):  # the first owner wrote last: this one starts anew
            await settled()
            theirs = await loaded(other)
            assert await published(theirs, 26)
        expected[b"11"] = b"26"
        assert await values(theirs) == expected
        await other.unload(T)
        again = await loaded(other)
        assert await values(again) == expected
        named = {segment.stored_in for segment in again.ledger.chain.segments}
        assert named <= set(stores.ledgers.ledgers), "no ledger of the log is deleted"
        return calls.count


@pytest.mark.parametrize("writes", [True, False], ids=["writes", "only loads"])
async def test_nothing_is_lost_at_any_step(writes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(1, STEPS_MAX):
        if await compacted(writes, at, monkeypatch) < at:
            break
    assert 5 < at < STEPS_MAX, "all steps were interrupted"


async def compacted_beside(at: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """As above, for compaction beside the log: the other broker compacts it, too."""
    stores = Stores()
    async with running(stores) as one, running(stores) as other:
        policies = TopicPolicies(retention=Retention(-1, -1))
        await one.catalog.set_topic_policies(T, policies)
        ours = await loaded(one)
        await ours.ledger.set_property(MIXED, "")
        for number in range(25):
            assert await published(ours, number)
        expected = await values(ours)

        async def takeover() -> None:
            theirs = await loaded(other)
            assert await published(theirs, 25)
            expected[b"10"] = b"25"
            await other.housekeeping.compactor.compact_beside(theirs)

        calls = Calls(at, takeover)
        with monkeypatch.context() as patched:
            for store, name in (
                (stores.metadata, "put"),
                (stores.ledgers, "create"),
                (stores.ledgers, "delete"),
            ):
                patched.setattr(store, name, calls.counted(getattr(store, name)))
            try:
                await one.housekeeping.compactor.compact_beside(ours)
            except BrokerError:
                assert calls.count >= at, "only the other owner makes it fail"
            await settled()
        theirs = await loaded(other)
        await other.housekeeping.compactor.compact_beside(theirs)
        await other.unload(T)
        again = await loaded(other)
        assert {one.key: one.value for one in await compacted_values(again.compacted)} == expected
        return calls.count


async def test_two_who_compact_beside_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(1, STEPS_MAX):
        if await compacted_beside(at, monkeypatch) < at:
            break
    assert 3 < at < STEPS_MAX, "all steps were interrupted"
