"""A topic that two brokers believe to own: what the loser does when it unloads or deletes it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.broker import administration
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Fenced
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic

T = TopicName.parse("t")


@pytest.fixture
def stores() -> Stores:
    return Stores()


@pytest.fixture
async def brokers(stores: Stores) -> AsyncIterator[tuple[Broker, Broker]]:
    options = {"deduplication": True}
    async with running(stores, **options) as one, running(stores, **options) as other:
        yield one, other


async def loaded(broker: Broker) -> PersistentTopic:
    topic = await broker.topic(T)
    assert isinstance(topic, PersistentTopic)
    return topic


async def published(topic: PersistentTopic, sequence_id: int) -> None:
    """Raises what a producer hears."""
    waiting = Completion[Position]()
    sent = [entry(sequence_id=sequence_id)]
    topic.publish_once("p", sequence_id, sent, None, waiting.done)
    await settled()
    await waiting.result()


async def acked(topic: PersistentTopic, position: Position, name: str = "s") -> None:
    cursor = topic.subscriptions[name].cursor
    cursor.ack_to(position)
    await cursor.saved()


async def test_the_loser_writes_and_deletes_nothing_of_the_winner(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    one, other = brokers
    before = await loaded(one)
    for name in ("s", "unsaved"):
        await before.subscription(name, start=START)
    for sequence_id in range(3):
        await published(before, sequence_id)
    await acked(before, (0, 0))
    after = await loaded(other)
    await published(after, 3)
    before.subscriptions["s"].cursor.ack_to((0, 1))
    before.subscriptions["unsaved"].cursor.ack_to((0, 1))
    records, ledgers = dict(stores.metadata._values), set(stores.ledgers.ledgers)
    with pytest.raises(BrokerError):
        await published(before, 4)
    await settled()
    assert one.topics == {}, "put away"
    assert stores.metadata._values == records
    assert set(stores.ledgers.ledgers) == ledgers
    for name in ("s", "unsaved"):
        await acked(after, (0, 2), name)
    await published(after, 5)
    assert other.topics == {T.full: after}
    assert (await loaded(one)).last_sequence_of("p") == 5


async def test_the_loser_saves_no_cursor_any_more(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    before, after = await loaded(brokers[0]), await loaded(brokers[1])
    await published(after, 0)
    with pytest.raises(Fenced):
        await before.ledger.claim()
    records = dict(stores.metadata._values)
    cursor = (await loaded(brokers[1])).ledger
    assert cursor.fenced is False
    fold = before.deduplication._fold
    assert fold is not None
    fold.changed()
    with pytest.raises(Fenced):
        await fold.save()
    await settled()
    assert stores.metadata._values == records


async def test_a_topic_of_another_owner_is_not_deleted(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    one, other = brokers
    before = await loaded(one)
    await before.subscription("s", start=START)
    topic_id = await one.topic_ids.of(T)
    after = await loaded(other)
    await published(after, 0)
    records, ledgers = dict(stores.metadata._values), set(stores.ledgers.ledgers)
    with pytest.raises(Fenced):
        await one.delete(T, force=True)
    await settled()
    assert stores.metadata._values == records
    assert set(stores.ledgers.ledgers) == ledgers
    assert await other.topic_ids.name_of(topic_id) == T
    await acked(after, (0, 0))
    assert other.topics == {T.full: after}


async def test_a_topic_with_a_subscription_of_another_owner_is_not_deleted(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    """It may have become the other one's without a write of the list: nothing was published."""
    one, other = brokers
    await published(await loaded(one), 0)
    topic_id = await one.topic_ids.of(T)
    await (await loaded(other)).subscription("theirs", start=START)
    with pytest.raises(Fenced):
        await one.delete(T)
    await settled()
    assert await one.topic_ids.name_of(topic_id) == T
    assert list((await loaded(one)).subscriptions) == ["theirs"], "loaded anew"
    assert (await loaded(one)).ledger.chain.entries == 1
    await one.delete(T, force=True)
    assert await stores.metadata.children("/managed-ledgers") == []
    assert await one.topic_ids.name_of(topic_id) is None


async def test_who_deletes_has_fenced_the_other_one(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    one, other = brokers
    await (await loaded(one)).subscription("s", start=START)
    theirs = await loaded(other)
    await one.delete(T, force=True)
    with pytest.raises(BrokerError):
        await published(theirs, 0)
    assert await stores.metadata.children("/managed-ledgers") == []
    await settled()
    assert set(stores.ledgers.ledgers) == set()


async def test_partitions_of_another_owner_are_not_deleted(
    stores: Stores, brokers: tuple[Broker, Broker]
) -> None:
    one, other = brokers
    await one.catalog.create_partitioned(T, 2)
    topic_id = await one.topic_ids.of(T)
    await one.topic(T.partition(0))
    theirs = await other.topic(T.partition(0))
    assert isinstance(theirs, PersistentTopic)
    await published(theirs, 0)
    with pytest.raises(Fenced):
        await administration.delete_partitioned(one, T, force=True)
    assert await one.topic_ids.name_of(topic_id) == T
    assert await one.catalog.partitions(T) == 2
    await settled()
    await administration.delete_partitioned(one, T, force=True)
    assert await one.topic_ids.name_of(topic_id) is None
    assert await one.catalog.partitions(T) == 0
