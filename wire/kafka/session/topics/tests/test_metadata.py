"""Which topics clients hear of, by name and by id, and which they make by asking."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.declare import NO_UUID
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.basics import (
    DescribeClusterRequest,
    DescribeTopic,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.topics import DeleteTopic, DeleteTopicsRequest
from magnetar.wire.kafka.session.authorized_operations import OMITTED
from magnetar.wire.kafka.session.topics.tests.test_topic_changes import create
from magnetar.wire.kafka.tests.batch import batch


async def test_topics_by_their_ids(stage: Stage) -> None:
    client = await stage.client("t")
    (found,) = (
        await client.exchange(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    ).topics
    assert found.topic_id != NO_UUID
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=found.topic_id)])
    (again,) = (await client.exchange(by_id, 12)).topics
    assert (again.name, again.topic_id, again.error_code) == ("t", found.topic_id, 0)
    expected = [DeleteTopic(topic_id=found.topic_id), DeleteTopic(topic_id=b"x" * 16)]
    received = await client.exchange(DeleteTopicsRequest(topics=expected, timeout_ms=1), 6)
    assert [(one.name, one.error_code) for one in received.responses] == [
        ("t", 0),
        (None, errors.UNKNOWN_TOPIC_ID),
    ]
    (gone,) = (await client.exchange(by_id, 12)).topics
    assert gone.error_code == errors.UNKNOWN_TOPIC_ID
    by_name = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (not_yet,) = (await client.exchange(by_name, 12)).topics
    assert (not_yet.error_code, not_yet.partitions) == (errors.UNKNOWN_TOPIC, [])
    (new,) = (await client.exchange(by_name, 12)).topics
    assert new.topic_id not in (found.topic_id, NO_UUID)


@pytest.mark.parametrize("name", ["a b", "a:b", "x" * 250, "..", "t-partition-0", "a\u00e4"])
async def test_what_may_not_be_made_is_not_made_by_asking(stage: Stage, name: str) -> None:
    client = await stage.client()
    refused, _ = await create(client, name=name)
    assert refused == errors.INVALID_TOPIC
    for version, may in ((9, True), (9, False), (12, True)):
        requested = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=may
        )
        (results,) = (await client.exchange(requested, version)).topics
        assert results.error_code == errors.INVALID_TOPIC
    results = await client.produce(name, batch(b"a"))
    assert results.error_code in (errors.UNKNOWN_TOPIC, errors.INVALID_TOPIC)
    assert (await client.exchange(MetadataRequest(topics=None), 9)).topics == []


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
        received = await client.exchange(request)
        for topic in received.topics:
            seen += [(topic.name, part.partition_index) for part in topic.partitions]
            assert (topic.error_code == 0) == (topic.name != "none")
        cursor = received.next_cursor
        if cursor is None:
            break
    assert seen == [("a", 0), *(("b", index) for index in range(5))]


async def test_the_cluster_is_this_server(stage: Stage) -> None:
    client = await stage.client()
    requested = DescribeClusterRequest(include_cluster_authorized_operations=False)
    received = await client.exchange(requested)
    assert [one.broker_id for one in received.brokers] == [received.controller_id]


@pytest.mark.parametrize("version", [10, 11])
async def test_metadata_by_id_is_refused_where_ids_mean_nothing_yet(
    stage: Stage, version: int
) -> None:
    """As by Kafka: these versions have room for ids, and for no name, but answers that need one."""
    client = await stage.client("t")
    for unnamed in (
        MetadataRequestTopic(name=None),
        MetadataRequestTopic(name="u", topic_id=b"\1" * 16),
    ):
        requested = MetadataRequest(topics=[MetadataRequestTopic(name="t"), unnamed])
        results = (await client.exchange(requested, version)).topics
        assert [one.error_code for one in results] == [errors.INVALID_REQUEST] * 2
        assert [one.name for one in results] == ["t", unnamed.name or ""]


async def test_all_topics_are_asked_for_in_each_versions_way(stage: Stage) -> None:
    """An empty list is all topics in version 0 and none later; null is all (`MetadataRequest`)."""
    client = await stage.client("b", "a")
    for requested, version, names in (
        (MetadataRequest(topics=[]), 0, ["a", "b"]),
        (MetadataRequest(topics=[]), 1, []),
        (MetadataRequest(topics=None), 1, ["a", "b"]),
    ):
        assert [one.name for one in (await client.exchange(requested, version)).topics] == names


async def test_what_may_be_done_is_told_only_if_asked_for(stage: Stage) -> None:
    client = await stage.client("t")
    for requested in (True, False):
        received = await client.exchange(
            MetadataRequest(
                topics=[MetadataRequestTopic(name="t")],
                include_topic_authorized_operations=requested,
                include_cluster_authorized_operations=requested,
            ),
            10,
        )
        (topic,) = received.topics
        operations = (topic.topic_authorized_operations, received.cluster_authorized_operations)
        assert operations == (
            (0b110111111000, 0b1111110100000) if requested else (OMITTED, OMITTED)
        )


async def test_a_topic_is_not_made_by_asking_where_it_may_not(stage: Stage) -> None:
    client = await stage.client()
    requested = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False
    )
    for _ in range(2):
        (results,) = (await client.exchange(requested, 9)).topics
        assert results.error_code == errors.UNKNOWN_TOPIC
