"""Which stored topics may have a part in transactions, without loading them."""

from __future__ import annotations

from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.names import MANAGED_LEDGERS, TopicName
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.metadata import overwrite
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.transactions.tests.test_topic_transactions import (
    SOURCE,
    TARGET,
    begun,
    publish,
    topic_of,
)
from magnetar.core.transactions.topic_transactions import TopicTransactions
from magnetar.core.transactions.unloaded_topics import unloaded_topics

PLAIN = TopicName.parse("plain")


async def used(stores: Stores, *, stops: bool) -> None:
    """A transaction publishes to one topic and acknowledges in another; a third has none."""
    async with running(stores) as broker:
        transactions = TopicTransactions(broker, form)
        await topic_of(broker, TARGET)
        key = await begun(transactions)
        for name in (SOURCE, TARGET, PLAIN):
            consumer = await attached(await topic_of(broker, name), SubscriptionType.SHARED)
            place = await publish(await topic_of(broker, name), None, b"1")
            subscription = (await topic_of(broker, name)).subscriptions["s"]
            if name == SOURCE:
                subscription.hold(consumer.consumer, key, [(*place, place[1])], [])
            elif name == PLAIN:
                subscription.ack(consumer.consumer, [(*place, place[1])])
            await subscription.cursor.saved()
        await publish(await topic_of(broker, TARGET), key, b"2")
        if stops:
            await broker.stop()


async def test_after_a_clean_stop_those_that_have_a_part() -> None:
    stores = Stores()
    await used(stores, stops=True)
    async with running(stores) as broker:
        assert await unloaded_topics(broker) == [SOURCE, TARGET]
        await topic_of(broker, SOURCE)
        assert await unloaded_topics(broker) == [TARGET]


async def test_after_a_kill_also_those_whose_cursor_is_in_a_ledger() -> None:
    stores = Stores()
    await used(stores, stops=False)
    async with running(stores) as broker:
        assert await unloaded_topics(broker) == [PLAIN, SOURCE, TARGET]


async def test_records_that_cannot_be_read_are_passed_over() -> None:
    stores = Stores()
    await used(stores, stops=True)
    await overwrite(stores.metadata, f"{MANAGED_LEDGERS}/{SOURCE.managed_ledger}", b"\xff")
    await overwrite(stores.metadata, f"{SOURCE.namespace.managed_ledgers}/%20+a-partition-", b"")
    async with running(stores) as broker:
        assert await unloaded_topics(broker) == [TARGET]
