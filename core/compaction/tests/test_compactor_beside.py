"""When topics are compacted beside their logs, and what is kept for that."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from magnetar.core.broker.broker import Broker
from magnetar.core.compaction.tests.histories import messages
from magnetar.core.compaction.tests.last_values import values
from magnetar.core.kernel.errors import AlreadyExists, StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.compacted.compacted_topic import CompactionState
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import Compaction, InactiveTopics, LogLimits, Retention
from magnetar.core.testing.bench import Outcome, settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic

A, B, C = (TopicName.parse(name) for name in "abc")
FOR_EVER = InactiveTopics(delete_while_inactive=False)
SUCCESS, RUNNING = CompactionState.SUCCESS, CompactionState.RUNNING


async def filled(broker: Broker, name: TopicName = A, **policies: Any) -> PersistentTopic:
    """Twenty-five messages, of five keys, in ledgers of ten."""
    await broker.catalog.set_topic_policies(name, TopicPolicies(**policies))
    topic = await broker.topic(name)
    assert isinstance(topic, PersistentTopic)
    for number in range(25):
        await publish(topic, b"%d" % (number % 5), b"%d" % number)
    return topic


async def publish(topic: PersistentTopic, key: bytes, value: bytes) -> None:
    topic.publish([entry(value, key=key)], [1], Outcome())
    await settled()


async def found(topic: PersistentTopic) -> dict[bytes | None, bytes | None]:
    return {one.key: one.value for one in await values(topic.compacted)}


async def tended(broker: Broker, topic: PersistentTopic) -> int:
    """A round of housekeeping; returns how many entries the log has then."""
    await broker.housekeeping.tend(topic)
    await settled()
    return topic.ledger.chain.entries


async def test_a_threshold() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction_threshold=10_000)
        await tended(broker, topic)
        assert topic.compacted.current is None
        topic.set_policies(replace(topic.policies, compaction_threshold=200))
        await tended(broker, topic)
        former = topic.compacted.current
        assert former is not None
        assert await found(topic) == {b"%d" % at: b"%d" % (20 + at) for at in range(5)}
        await publish(topic, b"0", b"new")
        await tended(broker, topic)
        assert topic.compacted.current == former, "not enough is new"


async def test_the_default_of_the_server() -> None:
    async with running(inactive_topics=FOR_EVER, compaction_threshold=200) as broker:
        topic = await filled(broker)
        await tended(broker, topic)
        assert len(await found(topic)) == 5


async def test_what_is_behind_an_open_transaction_does_not_count() -> None:
    """Else each round would write the former compacted ledger again, for two messages."""
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction_threshold=200)
        await tended(broker, topic)
        former = topic.compacted.current
        await publish(topic, b"0", b"new")
        await publish(topic, b"0", b"newer")
        await publish(topic, b"0", b"of a transaction")
        ledger, transactions = topic.ledger, topic.ledger.transactions
        transactions.wrote(7, ledger.confirmed_index - 1, ledger.chain.confirmed, 1)
        for number in range(25):
            await publish(topic, b"%d" % (number % 5), b"later")
        await tended(broker, topic)
        assert topic.compacted.current == former
        transactions.ended(7, ledger.confirmed_index, committed=True)
        await tended(broker, topic)
        assert set((await found(topic)).values()) == {b"later"}


async def test_nothing_is_deleted_before_it_is_compacted() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction_threshold=100_000)
        assert await tended(broker, topic) == 25
        broker.housekeeping.compactor.request(topic)
        await settled()
        assert await tended(broker, topic) == 5, "those of the ledger being written"
        assert len(await found(topic)) == 5


async def test_after_the_first_compaction_no_threshold_is_needed_for_that() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, retention=Retention(-1, -1))
        broker.housekeeping.compactor.request(topic)
        await settled()
        for number in range(20):
            await publish(topic, b"%d" % number, b"new")
        topic.set_policies(replace(topic.policies, retention=Retention(0, 0)))
        assert await tended(broker, topic) == 25, "up to the horizon whole ledgers are gone"
        await topic.compacted.forget()
        assert await tended(broker, topic) == 5


async def test_limits_of_a_log_wait_for_nobody() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(
            broker, compaction_threshold=100_000, log_limits=LogLimits(age_ms=60_000)
        )
        stores.clock.forward(61)
        assert await tended(broker, topic) == 0


async def test_one_after_the_other() -> None:
    async with running(inactive_topics=FOR_EVER) as broker:
        one, other = await filled(broker), await filled(broker, B)
        in_place = await filled(broker, C, compaction=Compaction(), retention=Retention(-1, -1))
        compactor = broker.housekeeping.compactor
        compactor.request(one)
        compactor.request(other)
        compactor.consider(in_place)
        with pytest.raises(AlreadyExists, match="already in progress"):
            compactor.request(other)
        assert compactor.busy_with is one
        assert other.compacted.progress.state is RUNNING
        await settled()
        assert one.compacted.progress.state is other.compacted.progress.state is SUCCESS
        assert in_place.ledger.chain.entries == 25
        compactor.consider(in_place)
        await settled()
        assert in_place.ledger.chain.entries == 10
        assert compactor.busy_with is None


async def test_a_failure_is_told_and_the_next_one_comes() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic, other = await filled(broker), await filled(broker, B)
        compactor = broker.housekeeping.compactor
        stores.ledgers.create_failure = StorageFailed("no room")
        compactor.request(topic)
        compactor.request(other)
        await settled()
        for one in (topic, other):
            assert one.compacted.progress.state is CompactionState.ERROR
            assert one.compacted.progress.last_error == "no room"
        stores.ledgers.create_failure = None
        compactor.request(other)
        await settled()
        assert len(await found(other)) == 5


async def test_a_threshold_does_not_try_again_at_once() -> None:
    """Each attempt reads all that is new, and other topics wait for it."""
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, compaction_threshold=200)
        progress = topic.compacted.progress
        stores.ledgers.create_failure = StorageFailed("no room")
        pauses = []
        for _ in range(9):
            await tended(broker, topic)
            began_ms = progress.failed_ms
            await tended(broker, topic)
            assert progress.failed_ms == began_ms
            pauses.append(progress.pause_ms // 1000)
            stores.clock.forward(pauses[-1])
        assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600]
        stores.ledgers.create_failure = None
        await tended(broker, topic)
        assert progress.state is SUCCESS
        assert len(await found(topic)) == 5
        assert progress.pause_ms == 0


async def test_an_unload_ends_it() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic, other = await filled(broker, retention=Retention(-1, -1)), await filled(broker, B)
        broker.housekeeping.compactor.request(topic)
        broker.housekeeping.compactor.request(other)
        await broker.unload(A)
        await broker.unload(B)
        await settled()
        assert broker.housekeeping.compactor.busy_with is None
        again = await broker.topic(A)
        assert isinstance(again, PersistentTopic)
        assert again.compacted.progress.state is CompactionState.NOT_RUN
        broker.housekeeping.compactor.request(again)
        await settled()
        assert len(await found(again)) == 5


async def test_both_kinds() -> None:
    """A tombstone stays in the log until the compacted ledger knows of it, however late."""
    stores = Stores()
    both = {"compaction": Compaction(dirty_ratio=0, delete_retention_ms=0)}
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, **both, retention=Retention(-1, -1))
        compactor = broker.housekeeping.compactor
        compactor.request(topic)
        await settled()
        assert len(await found(topic)) == 5
        await publish(topic, b"3", b"")
        topic.publish([entry_without_value(b"4")], [1], Outcome())
        for number in range(20):
            await publish(topic, b"x", b"%d" % number)
        for _ in range(3):
            stores.clock.forward(100)
            compactor.consider(topic)
            await settled()
        assert {one.key for one in await messages(topic.ledger)} >= {b"3", b"4"}
        compactor.request(topic)
        await settled()
        assert (await found(topic)).keys() == {b"0", b"1", b"2", b"x"}
        for number in range(10):
            await publish(topic, b"x", b"%d" % number)
        for _ in range(3):
            stores.clock.forward(100)
            compactor.consider(topic)
            await settled()
        assert b"4" not in {one.key for one in await messages(topic.ledger)}


async def test_a_threshold_counts_what_compaction_in_place_has_left() -> None:
    both = {"compaction": Compaction(dirty_ratio=0), "compaction_threshold": 10_000}
    async with running(inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, **both, retention=Retention(-1, -1))
        before = topic.ledger.bytes_after(topic.compacted.horizon)
        assert await tended(broker, topic) == 10, "the last value of each key, and the last ledger"
        after = topic.ledger.bytes_after(topic.compacted.horizon)
        topic.set_policies(replace(topic.policies, compaction_threshold=(before + after) // 2))
        await tended(broker, topic)
        assert topic.compacted.current is None
        topic.set_policies(replace(topic.policies, compaction_threshold=after - 1))
        await tended(broker, topic)
        assert len(await found(topic)) == 5
        assert topic.ledger.chain.entries == 10


def entry_without_value(key: bytes) -> bytes:
    """A message of a null value, which deletes its key for both."""
    sent = entry(b"", key=key)
    size = int.from_bytes(sent[6:10], "big")
    return (size + 3).to_bytes(4, "big") + sent[10 : 10 + size] + b"\xc8\x01\x01"
