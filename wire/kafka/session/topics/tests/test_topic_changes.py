"""Topics as administrators make and unmake them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import LogLimits
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.basics import (
    DescribeClusterRequest,
    DescribeTopic,
    DescribeTopicPartitionsRequest,
    FindTopic,
    MetadataRequest,
)
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.messages.topics import (
    CreateAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopic,
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
    assert (await client.hears(MetadataRequest(topics=None), 9)).topics == []


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
    heard = await client.hears(CreateTopicsRequest(topics=[plain, plain]), 7)
    assert [one.error_code for one in heard.topics] == [errors.INVALID_REQUEST]
    assert await partitions(client) == (errors.UNKNOWN_TOPIC, 0)


async def test_what_a_topic_is_made_with_is_told_and_kept(stage: Stage) -> None:
    client = await stage.client()
    wanted = [ConfigValue(name="retention.ms", value="1000")]
    topic = CreateTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=[], configs=wanted
    )
    (told,) = (await client.hears(CreateTopicsRequest(topics=[topic]), 7)).topics
    assert {one.name: (one.value, one.config_source) for one in told.configs}["retention.ms"] == (
        "1000",
        1,
    )
    effective = await stage.broker.catalog.effective(TopicName.parse("t"))
    assert effective.log_limits == LogLimits(age_ms=1000)
    assert not effective.inactive_topics.delete_while_inactive


async def test_topics_by_their_ids(stage: Stage) -> None:
    client = await stage.client("t")
    (found,) = (await client.hears(MetadataRequest(topics=[FindTopic(name="t")]), 12)).topics
    assert found.topic_id != NO_UUID
    by_id = MetadataRequest(topics=[FindTopic(name=None, topic_id=found.topic_id)])
    (again,) = (await client.hears(by_id, 12)).topics
    assert (again.name, again.topic_id, again.error_code) == ("t", found.topic_id, 0)
    wanted = [DeleteTopic(topic_id=found.topic_id), DeleteTopic(topic_id=b"x" * 16)]
    heard = await client.hears(DeleteTopicsRequest(topics=wanted, timeout_ms=1), 6)
    assert [(one.name, one.error_code) for one in heard.responses] == [
        ("t", 0),
        (None, errors.UNKNOWN_TOPIC_ID),
    ]
    (gone,) = (await client.hears(by_id, 12)).topics
    assert gone.error_code == errors.UNKNOWN_TOPIC_ID
    by_name = MetadataRequest(topics=[FindTopic(name="t")])
    (not_yet,) = (await client.hears(by_name, 12)).topics
    assert (not_yet.error_code, not_yet.partitions) == (errors.UNKNOWN_TOPIC, [])
    (new,) = (await client.hears(by_name, 12)).topics
    assert new.topic_id not in (found.topic_id, NO_UUID)


@pytest.mark.parametrize("name", ["a b", "a:b", "x" * 250, "..", "t-partition-0", "a\u00e4"])
async def test_what_may_not_be_made_is_not_made_by_asking(stage: Stage, name: str) -> None:
    client = await stage.client()
    refused, _ = await create(client, name=name)
    assert refused == errors.INVALID_TOPIC
    for version, may in ((9, True), (9, False), (12, True)):
        asked = MetadataRequest(topics=[FindTopic(name=name)], allow_auto_topic_creation=may)
        (told,) = (await client.hears(asked, version)).topics
        assert told.error_code == errors.INVALID_TOPIC
    told = await client.produce(name, batch(b"a"))
    assert told.error_code in (errors.UNKNOWN_TOPIC, errors.INVALID_TOPIC)
    assert (await client.hears(MetadataRequest(topics=None), 9)).topics == []


async def test_topics_described_some_partitions_at_a_time(stage: Stage) -> None:
    client = await stage.client("a")
    await create(client, name="b", num_partitions=5)
    cursor, seen = None, []
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopic(name=name) for name in ("b", "a", "none")],
            response_partition_limit=2,
            cursor=cursor,
        )
        heard = await client.hears(request)
        for topic in heard.topics:
            seen += [(topic.name, part.partition_index) for part in topic.partitions]
            assert (topic.error_code == 0) == (topic.name != "none")
        cursor = heard.next_cursor
        if cursor is None:
            break
    assert seen == [("a", 0), *(("b", index) for index in range(5))]


async def test_the_cluster_is_this_server(stage: Stage) -> None:
    client = await stage.client()
    asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
    heard = await client.hears(asked)
    assert [one.broker_id for one in heard.brokers] == [heard.controller_id]


@pytest.mark.parametrize("version", [10, 11])
async def test_metadata_by_id_is_refused_where_ids_mean_nothing_yet(
    stage: Stage, version: int
) -> None:
    """As by Kafka: these versions have room for ids, and for no name, but answers that need one."""
    client = await stage.client("t")
    for unnamed in (FindTopic(name=None), FindTopic(name="u", topic_id=b"\1" * 16)):
        asked = MetadataRequest(topics=[FindTopic(name="t"), unnamed])
        told = (await client.hears(asked, version)).topics
        assert [one.error_code for one in told] == [errors.INVALID_REQUEST] * 2
        assert [one.name for one in told] == ["t", unnamed.name or ""]
