"""Topics as administrators make and unmake them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.basics import (
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.messages.topics import (
    CreateAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from magnetar.wire.kafka.tests.batch import batch


async def create(client: Client, *, validate_only: bool = False, **fields: Any) -> tuple[int, int]:
    said: dict[str, Any] = {
        "name": "t",
        "num_partitions": 3,
        "replication_factor": -1,
        "assignments": [],
        "configs": [],
        **fields,
    }
    request = CreateTopicsRequest(
        topics=[CreateTopic(**said)], timeout_ms=1000, validate_only=validate_only
    )
    (outcomes,) = (await client.exchange(request, 6)).topics
    return outcomes.error_code, outcomes.num_partitions


async def partitions(client: Client, name: str = "t") -> tuple[int, int]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (topic,) = (await client.exchange(request, 9)).topics
    return topic.error_code, len(topic.partitions)


async def test_a_topic_is_made_enlarged_and_deleted(stage: Stage) -> None:
    client = await stage.client()
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)
    assert await create(client, validate_only=True) == (0, 3)
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)
    assert await create(client) == (0, 3)
    assert await partitions(client) == (0, 3)
    assert (await create(client))[0] == errors.TOPIC_ALREADY_EXISTS
    assert (await create(client, validate_only=True))[0] == errors.TOPIC_ALREADY_EXISTS
    for count, code in ((3, errors.INVALID_PARTITIONS), (5, 0)):
        expected = CreatePartitionsTopic(name="t", count=count, assignments=None)
        received = await client.exchange(
            CreatePartitionsRequest(topics=[expected], timeout_ms=1000, validate_only=False)
        )
        assert received.results[0].error_code == code
    assert await partitions(client) == (0, 5)
    await client.produce("t", batch(b"a"))
    deleting = DeleteTopicsRequest(topic_names=["t", "unknown"], timeout_ms=1000)
    received = await client.exchange(deleting, 5)
    assert [one.error_code for one in received.responses] == [0, errors.UNKNOWN_TOPIC]
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)
    assert (await client.produce("t", batch(b"a"))).error_code == errors.UNKNOWN_TOPIC


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"num_partitions": 0}, errors.INVALID_PARTITIONS),
        ({"replication_factor": 3}, errors.INVALID_REPLICATION_FACTOR),
        ({"name": "a/b"}, errors.INVALID_TOPIC),
        ({"configs": [ConfigValue(name="x", value="y")]}, errors.INVALID_CONFIG),
        ({"num_partitions": 10_001}, errors.INVALID_PARTITIONS),
        ({"name": "a b"}, errors.INVALID_TOPIC),
        (
            {"configs": [ConfigValue(name="retention.ms", value="soon")]},
            errors.INVALID_CONFIG,
        ),
        ({"configs": [ConfigValue(name="retention.ms", value=None)]}, errors.INVALID_CONFIG),
        (
            {
                "configs": [
                    ConfigValue(name="min.compaction.lag.ms", value="2"),
                    ConfigValue(name="max.compaction.lag.ms", value="1"),
                ]
            },
            errors.INVALID_CONFIG,
        ),
        (
            {"assignments": [CreateAssignment(partition_index=0, broker_ids=[0])]},
            errors.INVALID_REQUEST,
        ),
        (
            {
                "assignments": [CreateAssignment(partition_index=0, broker_ids=[7])],
                "num_partitions": -1,
            },
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {
                "assignments": [CreateAssignment(partition_index=1, broker_ids=[0])],
                "num_partitions": -1,
            },
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
async def test_what_cannot_be_is_refused(stage: Stage, fields: dict[str, Any], code: int) -> None:
    client = await stage.client()
    assert (await create(client, **fields))[0] == code
    assert (await client.exchange(MetadataRequest(topics=None), 9)).topics == []


async def test_partitions_may_be_put_on_this_broker(stage: Stage) -> None:
    client = await stage.client()
    assignments = [
        CreateAssignment(partition_index=index, broker_ids=[stage.front.options.node_id])
        for index in range(2)
    ]
    assert await create(client, assignments=assignments, num_partitions=-1) == (0, 2)
    assert await partitions(client) == (0, 2)


async def test_a_topic_that_is_named_twice_is_not_made(stage: Stage) -> None:
    client = await stage.client()
    plain = CreateTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    received = await client.exchange(CreateTopicsRequest(topics=[plain, plain]), 7)
    assert [one.error_code for one in received.topics] == [errors.INVALID_REQUEST]
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)
