"""Partitions are counted once, found when they are new, and forgotten with their topic."""

from __future__ import annotations

import pytest

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AutoTopicCreation
from magnetar.core.testing.broker import running
from magnetar.wire.mqtt.delivery import partitions
from magnetar.wire.mqtt.delivery.partitions import PartitionCounts, names_of

A = TopicName.parse("a")
B = TopicName.parse("b")
NEVER = NamespacePolicies(auto_topic_creation=AutoTopicCreation(False))


async def test_they_are_counted_and_counted_again() -> None:
    async with running() as broker:
        found = PartitionCounts(broker)
        await administration.create_partitioned(broker, A, 2)
        assert found.known(A) is None
        assert [await found.count(A), found.known(A), await found.count(B)] == [2, 2, 0]
        assert not await found.look()
        await administration.grow_partitioned(broker, A, 3)
        assert await found.look()
        assert found.known(A) == 3
        found.forget(A)
        found.forget(A)
        assert len(found) == 1


async def test_topics_that_are_not_there_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MISSED_MAX", 2)
    async with running() as broker:
        found = PartitionCounts(broker)
        await broker.catalog.set_policies(NamespaceName.parse("public/default"), NEVER)
        with pytest.raises(TopicNotFound):
            await found.count(A)
        missed = [found.miss(one) for one in (A, A, B, TopicName.parse("c"))]
        assert missed == [True, False, True, False]
        assert not await found.look()
        await administration.create_topic(broker, A)
        await administration.create_partitioned(broker, B, 2)
        assert await found.look()
        assert not await found.look()
        assert [await found.count(A), await found.count(B)] == [0, 2]


def test_the_names_of_partitions() -> None:
    assert names_of(A, 0) == [A]
    assert names_of(A, 2) == [A.partition(0), A.partition(1)]
