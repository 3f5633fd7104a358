"""Transactions that no coordinator knows any more: they are told, shown, and aborted on demand."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.metadata import overwrite, remove
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.transactions.tests.test_topic_transactions import (
    SOURCE,
    TARGET,
    begun,
    delivered,
    publish,
    topic_of,
)
from magnetar.core.transactions.topic_transactions import RECORDS, TopicTransactions
from magnetar.core.transactions.transaction_id import TransactionId, name_of

DAMAGES = (b"", b"{", b"\xff\xfe", b"[]", None)
"""What is in the record after a restart; None if there is none any more."""


async def held(stores: Stores) -> TransactionId:
    """A message of the target is published in a transaction, and one of the source acknowledged."""
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
        consumer = await attached(source, SubscriptionType.SHARED)
        place = await publish(source, None, b"1")
        key = await begun(transactions)
        await publish(target, key, b"2")
        await publish(target, None, b"3")
        source.subscriptions["s"].hold(consumer.consumer, key, [(*place, place[1])], [])
        await source.subscriptions["s"].cursor.saved()
        return key


@asynccontextmanager
async def again(
    stores: Stores, key: TransactionId, record: bytes | None
) -> AsyncIterator[tuple[Broker, TopicTransactions]]:
    """The next life, with that record of the transaction."""
    path = f"{RECORDS}/{name_of(key)}"
    if record is None:
        await remove(stores.metadata, path)
    else:
        await overwrite(stores.metadata, path, record)
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        await transactions.open()
        yield broker, transactions


@pytest.mark.parametrize("record", DAMAGES)
async def test_it_is_told_and_aborted(
    record: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    stores = Stores()
    key = await held(stores)
    async with again(stores, key, record) as (broker, transactions):
        source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
        for topic in (source, target):
            assert await transactions.hanging.of(topic) == [key]
        readers = [await attached(topic, SubscriptionType.SHARED) for topic in (source, target)]
        assert [await delivered(broker, each) for each in readers] == [[], []]
        caplog.clear()
        await transactions.hanging.look()
        await transactions.hanging.look()
        assert len(caplog.records) == 2, "each topic once"
        assert all("abort-transaction -m 3 -l " in each.getMessage() for each in caplog.records)
        assert {each.levelno for each in caplog.records} == {logging.ERROR}

        assert await transactions.hanging.abort(key)
        assert [await delivered(broker, each) for each in readers] == [[b"1"], [b"3"]]
        assert await transactions.hanging.of(source) == await transactions.hanging.of(target) == []
        assert not await transactions.hanging.abort(key), "nothing is left of it"
    assert await stores.metadata.get(f"{RECORDS}/{name_of(key)}") is None


@pytest.mark.parametrize("record", DAMAGES)
async def test_topics_that_are_not_loaded_are_loaded(record: bytes | None) -> None:
    stores = Stores()
    async with running(stores) as broker:
        for name in ("idle", "used"):
            topic = await topic_of(broker, TopicName.parse(name))
            await attached(topic, SubscriptionType.SHARED)
    key = await held(stores)
    async with again(stores, key, record) as (broker, transactions):
        await attached(await topic_of(broker, TopicName.parse("used")), SubscriptionType.SHARED)
        used = TopicName.parse("used").full
        assert list(broker.topics) == [used]
        assert await transactions.hanging.abort(key)
        loaded = {SOURCE.full, TARGET.full, used}
        assert set(broker.topics) == loaded, "others are unloaded again"
        source, target = await topic_of(broker, SOURCE), await topic_of(broker, TARGET)
        assert await transactions.hanging.of(source) == await transactions.hanging.of(target) == []
        readers = [await attached(topic, SubscriptionType.SHARED) for topic in (source, target)]
        assert [await delivered(broker, each) for each in readers] == [[b"1"], [b"3"]]
        assert not await transactions.hanging.abort(key), "nothing is left of it"
    assert await stores.metadata.get(f"{RECORDS}/{name_of(key)}") is None


async def test_a_topic_that_cannot_be_loaded_is_told_after_the_others() -> None:
    stores, damaged = Stores(), TopicName.parse("damaged")
    async with running(stores) as broker:
        await (await topic_of(broker, damaged)).begin_transactions()
    key = await held(stores)
    cursor = f"/managed-ledgers/{damaged.managed_ledger}/s"
    await overwrite(stores.metadata, cursor, b"\xff")
    async with again(stores, key, b"{") as (broker, transactions):
        with pytest.raises(Corrupted):
            await transactions.hanging.abort(key)
        assert await transactions.hanging.of(await topic_of(broker, SOURCE)) == []
        assert await transactions.hanging.of(await topic_of(broker, TARGET)) == []
        assert await stores.metadata.get(f"{RECORDS}/{name_of(key)}") is not None
        await remove(stores.metadata, cursor)
        assert await transactions.hanging.abort(key)
    assert await stores.metadata.get(f"{RECORDS}/{name_of(key)}") is None


async def test_one_that_is_known_does_not_hang(caplog: pytest.LogCaptureFixture) -> None:
    stores = Stores()
    key = await held(stores)
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        await transactions.open()
        target = await topic_of(broker, TARGET)
        assert await transactions.hanging.of(target) == []
        assert not await transactions.hanging.abort(key)
        assert key in target.transactions.index.open


async def test_one_of_another_broker_does_not_hang() -> None:
    stores, table = Stores(), OwnershipTable(Peer(7))
    key = await held(stores)
    table.transactions[name_of(key)] = Peer(7)
    async with running(stores, table) as broker:
        transactions = TopicTransactions(broker, form)
        await transactions.open()
        target = await topic_of(broker, TARGET)
        assert await transactions.hanging.of(target) == []
        assert not await transactions.hanging.abort(key)
