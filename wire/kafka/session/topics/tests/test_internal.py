"""Where Kafka keeps what groups commit: shown once there are groups, and left alone."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.basics import (
    DescribeTopic,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.configs import (
    ChangeConfig,
    ChangeResource,
    ConfigResourceType,
    DescribeConfigsRequest,
    DescribeResource,
    IncrementalAlterConfigsRequest,
)
from magnetar.wire.kafka.messages.parts import TopicIndexes
from magnetar.wire.kafka.messages.records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    EndEpochPartition,
    EndEpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)
from magnetar.wire.kafka.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopic,
    DeleteTopicsRequest,
)
from magnetar.wire.kafka.messages.transactions import DescribeProducersRequest
from magnetar.wire.kafka.session.groups.tests.test_offsets import commit
from magnetar.wire.kafka.session.topics import internal
from magnetar.wire.kafka.tests.batch import batch

NAME = internal.OFFSETS


async def with_group(stage: Stage) -> Client:
    client = await stage.client("t")
    assert (await client.exchange(commit(0), 9)).topics[0].partitions[0].error_code == 0
    return client


async def test_it_comes_with_the_first_group(stage: Stage) -> None:
    client = await stage.client("t")
    by_name = MetadataRequest(topics=[MetadataRequestTopic(name=NAME)])
    for _ in range(2):  # it is not made by being asked for
        (outcomes,) = (await client.exchange(by_name, 12)).topics
        assert outcomes.error_code == errors.UNKNOWN_TOPIC
    assert (await client.fetch(NAME, 0)).error_code == errors.UNKNOWN_TOPIC
    await with_group(stage)
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=internal.TOPIC_ID)])
    for requested in (by_name, by_id, MetadataRequest(topics=None)):
        outcomes = (await client.exchange(requested, 12)).topics[0]
        assert (outcomes.name, outcomes.topic_id, outcomes.error_code) == (
            NAME,
            internal.TOPIC_ID,
            0,
        )
        assert (outcomes.is_internal, len(outcomes.partitions)) == (True, 50)
    every_one = (await client.exchange(MetadataRequest(topics=None), 12)).topics
    assert [(one.name, one.is_internal) for one in every_one] == [(NAME, True), ("t", False)]
    requested = DescribeTopicPartitionsRequest(
        topics=[DescribeTopic(name=NAME)], response_partition_limit=100
    )
    (described,) = (await client.exchange(requested, 0)).topics
    assert (described.is_internal, len(described.partitions)) == (True, 50)


async def test_there_is_nothing_in_it(stage: Stage) -> None:
    client = await with_group(stage)
    for timestamp in (-1, -2):
        parts = [ListOffsetsPartition(partition_index=one, timestamp=timestamp) for one in (49, 50)]
        requested = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=NAME, partitions=parts)]
        )
        (topic,) = (await client.exchange(requested, 7)).topics
        assert [(one.error_code, one.offset) for one in topic.partitions] == [
            (0, 0),
            (errors.UNKNOWN_TOPIC, -1),
        ]
    found = await client.fetch(NAME, 0)
    assert (found.error_code, found.high_watermark, found.log_start_offset) == (0, 0, 0)
    assert (await client.fetch(NAME, 1)).error_code == errors.OFFSET_OUT_OF_RANGE
    part = FetchPartition(partition=49, fetch_offset=0, partition_max_bytes=100)
    by_id = FetchTopic(topic_id=internal.TOPIC_ID, partitions=[part])
    received = await client.exchange(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[by_id]), 13)
    assert received.responses[0].partitions[0].error_code == 0
    epoch = EndEpochPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    requested = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[EndEpochTopic(topic=NAME, partitions=[epoch])]
    )
    (ended,) = (await client.exchange(requested, 4)).topics[0].partitions
    assert (ended.error_code, ended.end_offset) == (0, 0)


async def test_nobody_produces_to_it(stage: Stage) -> None:
    """`kafka-transactions find-hanging` asks that of every partition, and for ever where there is
    none of that name.
    """
    client = await with_group(stage)
    requested = DescribeProducersRequest(
        topics=[TopicIndexes(name=NAME, partition_indexes=[0, 49, 50])]
    )
    (outcomes,) = (await client.exchange(requested)).topics
    assert [one.error_code for one in outcomes.partitions] == [0, 0, errors.UNKNOWN_TOPIC]
    assert outcomes.partitions[0].active_producers == []


async def test_it_is_compacted(stage: Stage) -> None:
    client = await with_group(stage)
    resource = DescribeResource(
        resource_type=ConfigResourceType.TOPIC, resource_name=NAME, configuration_keys=None
    )
    (outcomes,) = (await client.exchange(DescribeConfigsRequest(resources=[resource]))).results
    assert {one.name: one.value for one in outcomes.configs}["cleanup.policy"] == "compact"


async def test_nobody_writes_to_it(stage: Stage) -> None:
    client = await with_group(stage)
    assert (await client.produce(NAME, batch(b"a"))).error_code == errors.INVALID_TOPIC
    made = CreateTopic(
        name=NAME, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    outcomes = await client.exchange(CreateTopicsRequest(topics=[made], timeout_ms=1), 6)
    assert outcomes.topics[0].error_code == errors.TOPIC_ALREADY_EXISTS
    for topic in (
        DeleteTopic(name=NAME, topic_id=NO_UUID),
        DeleteTopic(topic_id=internal.TOPIC_ID),
    ):
        deleted = await client.exchange(DeleteTopicsRequest(topics=[topic], timeout_ms=1), 6)
        assert deleted.responses[0].error_code == errors.INVALID_TOPIC
    larger = CreatePartitionsTopic(name=NAME, count=60, assignments=None)
    grown = await client.exchange(
        CreatePartitionsRequest(topics=[larger], timeout_ms=1, validate_only=False)
    )
    assert grown.results[0].error_code == errors.INVALID_TOPIC
    change = ChangeConfig(name="retention.ms", config_operation=0, value="1")
    resource = ChangeResource(
        resource_type=ConfigResourceType.TOPIC, resource_name=NAME, configs=[change]
    )
    altered = await client.exchange(
        IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    )
    assert altered.responses[0].error_code == errors.INVALID_TOPIC
    part = DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [DeleteRecordsTopic(name=NAME, partitions=[part])]
    emptied = await client.exchange(DeleteRecordsRequest(topics=topics, timeout_ms=1))
    assert emptied.topics[0].partitions[0].error_code == errors.INVALID_TOPIC
    assert (await client.exchange(commit(0), 9)).topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("name", [f"public/default/{NAME}", f"persistent://public/default/{NAME}"])
async def test_nor_by_a_longer_name(stage: Stage, name: str) -> None:
    client = await stage.client()
    for _ in range(2):
        (outcomes,) = (
            await client.exchange(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
        ).topics
        assert outcomes.error_code == errors.UNKNOWN_TOPIC
