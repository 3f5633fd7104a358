"""Which topics are compacted, one at a time, and what happens to those who read them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.compaction.tests.histories import batch, entries, messages, wrapped
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import (
    Compaction,
    InactiveTopics,
    LedgerLimits,
    LogLimits,
    Retention,
)
from magnetar.core.testing.bench import Outcome, settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.topic.persistent_topic import PersistentTopic

A, B = TopicName.parse("a"), TopicName.parse("b")
REMAINING = Retention(-1, -1)
FOR_EVER = InactiveTopics(delete_while_inactive=False)


async def filled(broker: Broker, name: TopicName = A, **policies: Any) -> PersistentTopic:
    """Twenty-five batches, of which five keys are; in ledgers of ten."""
    expected = TopicPolicies(retention=REMAINING, **{"compaction": Compaction(), **policies})
    await broker.catalog.set_topic_policies(name, expected)
    topic = await broker.topic(name)
    assert isinstance(topic, PersistentTopic)
    await topic.ledger.set_property(MIXED, "")
    for number in range(25):
        topic.publish([wrapped(batch([(b"%d" % (number % 5), b"%d" % number)]))], [1], Outcome())
        await settled()
    return topic


async def indexes(topic: PersistentTopic) -> list[int]:
    return [one.index for one in await messages(topic.ledger)]


async def test_what_is_due_is_done() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        await broker.housekeeping.tend(topic)
        await settled()
        assert await indexes(topic) == list(range(15, 25))
        compactor = broker.housekeeping.compactor
        assert compactor.busy_with is None
        before = topic.ledger.chain.rewritten
        await broker.housekeeping.tend(topic)
        await settled()
        assert topic.ledger.chain.rewritten == before, "nothing is new"


async def test_what_is_not_to_be_compacted_is_not() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction=None)
        await broker.housekeeping.tend(topic)
        await settled()
        assert await indexes(topic) == list(range(25))


async def test_one_at_a_time() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        one, other = await filled(broker), await filled(broker, B)
        compactor = broker.housekeeping.compactor
        compactor.consider(one)
        compactor.consider(other)
        assert compactor.busy_with is one
        await settled()
        assert (len(await indexes(one)), len(await indexes(other))) == (10, 25)
        compactor.consider(other)
        await settled()
        assert len(await indexes(other)) == 10


async def test_a_failure_is_said_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        stores.ledgers.create_failure = StorageFailed("no room")
        await broker.housekeeping.tend(topic)
        await settled()
        assert "not compacted: no room" in caplog.text
        assert await indexes(topic) == list(range(25))
        stores.ledgers.create_failure = None
        await broker.housekeeping.tend(topic)
        await settled()
        assert len(await indexes(topic)) == 10


async def test_an_unload_ends_it() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        broker.housekeeping.compactor.consider(topic)
        await broker.unload(A)
        await settled()
        assert broker.housekeeping.compactor.busy_with is None
        again = await broker.topic(A)
        assert isinstance(again, PersistentTopic)
        assert await indexes(again) in (list(range(25)), list(range(15, 25)))
        assert len(stores.ledgers.ledgers) == len(
            {one.stored_in for one in again.ledger.chain.segments}
        )


async def test_subscriptions_know_how_much_waits() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        shown = TopicName.parse("shown")
        await broker.create_shadow(shown, topic.name)
        readers = [topic, await broker.topic(shown)]
        subscriptions = [await reader.subscription("s", start=START) for reader in readers]
        places = [at for at, _ in await entries(topic.ledger)]
        for subscription in subscriptions:
            for at in (2, 3, 17):
                subscription.cursor.ack_range(*places[at], places[at][1])
        await broker.housekeeping.tend(topic)
        await settled()
        for subscription in subscriptions:
            assert subscription.cursor.backlog == 9
            assert subscription.cursor.acks.next_unacked(START) == places[15]


async def test_nothing_waits_longer_than_it_may() -> None:
    """A ledger ends when it is so old, and what is in it is compacted when it is not the last."""
    stores = Stores()
    expected = Compaction(dirty_ratio=1, max_lag_ms=60_000)
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction=expected)

        async def tended(seconds: int) -> list[int]:
            stores.clock.forward(seconds)
            await broker.housekeeping.tend(topic)
            await settled()
            return await indexes(topic)

        async def publish(value: bytes) -> None:
            topic.publish([wrapped(batch([(b"1", value)]))], [1], Outcome())
            await settled()

        assert await tended(59) == list(range(15, 25)), "all of it was new"
        assert not topic.ledger.chain.segments[-1].closed_ms
        assert await tended(1) == list(range(15, 25))
        assert topic.ledger.chain.segments[-1].closed_ms
        await publish(b"25")
        assert await tended(0) == list(range(15, 26)), "there is no hurry yet"
        assert await tended(1) == list(range(20, 26))
        assert await tended(59) == list(range(20, 26))
        await publish(b"26")
        assert await tended(1) == [20, 22, 23, 24, 25, 26]


async def test_both_policies() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(
            broker,
            log_limits=LogLimits(age_ms=60_000),
            ledger_limits=LedgerLimits(age_ms=60_000),
        )
        await broker.housekeeping.tend(topic)
        await settled()
        assert await indexes(topic) == list(range(15, 25))
        stores.clock.forward(61)
        await broker.housekeeping.tend(topic)
        await settled()
        assert await indexes(topic) == []
        assert topic.ledger.first_index == 25
