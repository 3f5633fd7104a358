"""Finding and creating topics by asking for them."""

from collections.abc import AsyncIterator

import pytest
import trio

from core.broker import Broker, BrokerSettings
from core.clock import SystemClock
from core.errors import TopicNotFound
from core.metadata.memory import MemoryMetadata
from core.names import NamespaceName, TopicName
from core.policies import AutoTopicCreation, BrokerDefaults
from core.testing.ledgers import MemoryLedgers

NAMESPACE = NamespaceName.parse("public/default")
A = TopicName.parse("a")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """One where topics come into being with three partitions."""
    creation = AutoTopicCreation(True, "partitioned", 3)
    settings = BrokerSettings(defaults=BrokerDefaults(auto_topic_creation=creation))
    made = Broker(settings, MemoryLedgers(), MemoryMetadata(), SystemClock(), lambda: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def test_a_question_creates_a_partitioned_topic(broker: Broker) -> None:
    with pytest.raises(TopicNotFound):
        await broker.partitions_or_create(A, create=False)
    assert await broker.partitions_or_create(A, create=True) == 3
    assert await broker.partitions_or_create(A, create=False) == 3


async def test_a_partition_has_no_partitions(broker: Broker) -> None:
    await broker.partitions_or_create(A, create=True)
    for index in (0, 2, 3):
        assert await broker.partitions_or_create(A.partition(index), create=True) == 0
    assert (await broker.topic(A.partition(2))).name == A.partition(2)
    with pytest.raises(TopicNotFound):
        await broker.topic(A.partition(3))
    assert len(await broker.topics_of(NAMESPACE)) == 3
