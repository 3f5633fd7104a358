"""Topics as administrators make and unmake them."""

from __future__ import annotations

from typing import Any

import pytest

from wire.kafka import errors
from wire.kafka.messages.basics import DescribeClusterRequest, FindTopic, MetadataRequest
from wire.kafka.messages.parts import ConfigValue
from wire.kafka.messages.topics import (
    CreateAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from wire.kafka.session.tests.conftest import Client, Stage
from wire.kafka.tests.batch import batch


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
    (told,) = (await client.hears(request, 6)).topics
    return told.error_code, told.num_partitions


async def partitions(client: Client, name: str = "t") -> tuple[int, int]:
    request = MetadataRequest(topics=[FindTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = (await client.hears(request, 9)).topics
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
        wanted = CreatePartitionsTopic(name="t", count=count, assignments=None)
        heard = await client.hears(
            CreatePartitionsRequest(topics=[wanted], timeout_ms=1000, validate_only=False)
        )
        assert heard.results[0].error_code == code
    assert await partitions(client) == (0, 5)
    await client.produce("t", batch(b"a"))
    deleting = DeleteTopicsRequest(topic_names=["t", "unknown"], timeout_ms=1000)
    heard = await client.hears(deleting, 5)
    assert [one.error_code for one in heard.responses] == [0, errors.UNKNOWN_TOPIC]
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)
    assert (await client.produce("t", batch(b"a"))).error_code == errors.UNKNOWN_TOPIC


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"num_partitions": 0}, errors.INVALID_PARTITIONS),
        ({"replication_factor": 3}, errors.INVALID_REPLICATION_FACTOR),
        ({"name": "a/b"}, errors.INVALID_TOPIC),
        ({"configs": [ConfigValue(name="x", value="y")]}, errors.INVALID_CONFIG),
        (
            {"assignments": [CreateAssignment(partition_index=0, broker_ids=[7])]},
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
async def test_what_cannot_be_is_refused(stage: Stage, fields: dict[str, Any], code: int) -> None:
    client = await stage.client()
    assert (await create(client, **fields))[0] == code
    assert (await client.hears(MetadataRequest(topics=None), 9)).topics == []


async def test_the_cluster_is_this_server(stage: Stage) -> None:
    client = await stage.client()
    asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
    heard = await client.hears(asked)
    assert [one.broker_id for one in heard.brokers] == [heard.controller_id]
