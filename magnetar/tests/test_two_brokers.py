"""Two brokers on one embedded bookie and its metadata: a topic goes back and forth between them.

As `core/cluster/tests/test_two_brokers.py`, on the real storage tier: fencing, journal, disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.broker.administration import delete_resource_group
from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.entry.kafka import form
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Fenced, NotAllowed, NotCoordinator, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.quotas.resource_group import GroupRates
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.transaction import PendingCommit, Transaction, TransactionState
from magnetar.wire.kafka.groups.group_records import GroupRecord, GroupRecords

T = TopicName.parse("t")
TRIES_MAX = 5
"""Of one publish: each owner that was replaced is found out by the first."""


@asynccontextmanager
async def two_brokers(folder: Path) -> AsyncIterator[tuple[Broker, Broker]]:
    async with (
        open_metadata(folder / "metadata", on_fatal=pytest.fail) as metadata,
        open_embedded(folder / "bookie", metadata, BookieSettings(), on_fatal=pytest.fail) as store,
        trio.open_nursery() as nursery,
    ):
        one, other = (
            Broker(BrokerSettings(), store, metadata, SystemClock(), lambda: None) for _ in range(2)
        )
        for broker in (one, other):
            await nursery.start(broker.run)
        yield one, other
        for broker in (one, other):
            await broker.stop()
        nursery.cancel_scope.cancel()


async def loaded(broker: Broker) -> PersistentTopic:
    topic = await broker.topic(T)
    assert isinstance(topic, PersistentTopic)
    return topic


async def published(broker: Broker, payload: bytes) -> None:
    """As a producer does it: whoever is refused looks the topic up again."""
    for _ in range(TRIES_MAX):
        topic = await loaded(broker)
        waiting = Completion[Position]()
        topic.publish([payload], None, waiting.done)
        try:
            await waiting.result()
        except (Fenced, NotReady):
            await broker.wait_unloaded(topic)
            continue
        return
    raise AssertionError(f"{payload!r} was refused {TRIES_MAX} times")


async def entries(broker: Broker) -> list[bytes]:
    topic = await loaded(broker)
    found, chain = [], topic.ledger.chain
    position = chain.first
    while chain.has(position):
        part = await topic.ledger.read(position, 100, 1 << 20)
        found += [bytes(part.sent(at)) for at in range(len(part.payloads))]
        position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
    return found


async def test_nothing_that_was_answered_is_lost(tmp_path: Path) -> None:
    answered = []
    with trio.fail_after(60):
        async with two_brokers(tmp_path) as brokers:
            await (await loaded(brokers[0])).subscription("s", start=START)
            for number in range(12):
                broker = brokers[number // 2 % 2]
                payload = b"%d" % number
                await published(broker, payload)
                answered.append(payload)
                cursor = (await loaded(broker)).subscriptions["s"].cursor
                cursor.ack_to((await loaded(broker)).ledger.chain.confirmed)
                await cursor.saved()
            assert await entries(brokers[1]) == answered
        async with two_brokers(tmp_path) as brokers:
            assert await entries(brokers[0]) == answered
            assert (await loaded(brokers[0])).subscriptions["s"].cursor.backlog == 0


async def no_commits(pending: Iterable[PendingCommit]) -> None:
    assert not list(pending)


async def test_a_transaction_has_one_coordinator(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with two_brokers(tmp_path) as brokers:
            ours, theirs = (
                TransactionCoordinator(broker, "/transactions", form, no_commits)
                for broker in brokers
            )
            topic = await loaded(brokers[1])
            await topic.begin_transactions()
            async with ours.alone_with("n", settled=True) as slot:
                await ours.store(slot, Transaction("n", 7, 0, 1000))
                await ours.extend(slot, logs=[T.full])
            async with theirs.alone_with("n", settled=True) as slot:
                await theirs.decide(slot, commit=True)
            async with theirs.alone_with("n", settled=True) as slot:
                assert slot.transaction is not None
                assert slot.transaction.state is TransactionState.COMMITTED
            async with ours.alone_with("n", settled=True) as slot:
                with pytest.raises(NotCoordinator):
                    await ours.decide(slot, commit=False)
            assert len(await entries(brokers[1])) == 1, "one marker"
        async with two_brokers(tmp_path) as brokers:
            coordinator = TransactionCoordinator(brokers[0], "/transactions", form, no_commits)
            await coordinator.open()
            found = coordinator.find("n")
            assert found is not None
            assert found.state is TransactionState.COMMITTED
            assert len(await entries(brokers[0])) == 1


async def test_a_group_has_one_coordinator(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with two_brokers(tmp_path) as brokers:
            ours, theirs = (GroupRecords(broker.metadata) for broker in brokers)
            await ours.ensure("g", GroupRecord("consumer"))
            await theirs.note("g", "classic", "consumer", 5)
            with pytest.raises(NotCoordinator):
                await ours.note("g", "classic", "consumer", 7)
            await theirs.verify("g")
            await ours.note("g", "classic", "consumer", 9)
            with pytest.raises(NotCoordinator):
                await theirs.verify("g")
        async with two_brokers(tmp_path) as brokers:
            found = await GroupRecords(brokers[0].metadata).find("g")
            assert found is not None
            assert found.empty_since_ms == 9


async def test_a_resource_group_is_followed(tmp_path: Path) -> None:
    """Whoever changes it; a namespace is in one, as both brokers see it."""
    with trio.fail_after(60):
        async with two_brokers(tmp_path) as (ours, theirs):
            await theirs.groups.put("g", GroupRates(5))
            async with theirs.catalog.changing(T.namespace):
                policies = NamespacePolicies(resource_group="g")
                await theirs.catalog.set_policies(T.namespace, policies)
            topic = await loaded(ours)
            assert [each.limit.messages for each in topic.throttles.publish] == [5]
            await theirs.groups.put("g", GroupRates(6))
            await ours.groups.settled()
            assert [each.limit.messages for each in topic.throttles.publish] == [6]
            with pytest.raises(NotAllowed, match="in use"):
                await delete_resource_group(ours, "g")
            await theirs.groups.delete("g")  # as if it had not seen that
            await ours.groups.settled()
            assert topic.throttles.publish == ()
        async with two_brokers(tmp_path) as (ours, _):
            await ours.groups.put("g", GroupRates(7))
            topic = await loaded(ours)
            assert [each.limit.messages for each in topic.throttles.publish] == [7]
