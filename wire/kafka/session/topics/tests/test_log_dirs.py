"""Where partitions lie, and who leads them."""

from __future__ import annotations

from magnetar.core.testing.broker import running
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.parts import TopicPartitions
from magnetar.wire.kafka.messages.reassignments import (
    AlteredDir,
    AlteredDirTopic,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribedLogDir,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignedPartition,
    ReassignedTopic,
)
from magnetar.wire.kafka.tests.batch import batch


async def sizes(client: Client, topics: list[TopicPartitions] | None = None) -> dict[str, int]:
    """Of the partitions of the one directory."""
    (found,) = (await client.exchange(DescribeLogDirsRequest(topics=topics))).results
    assert found.error_code == 0
    return {
        f"{topic.name}-{part.partition_index}": part.partition_size
        for topic in found.topics
        for part in topic.partitions
    }


async def test_sizes_of_partitions(stage: Stage) -> None:
    client = await stage.client("a", "b")
    assert await sizes(client) == {"a-0": 0, "b-0": 0}
    await client.produce("a", batch(b"x" * 50))
    found = await sizes(client)
    assert 111 < found["a-0"] < 222
    expected = [
        TopicPartitions(topic="a", partitions=[0, 7]),
        TopicPartitions(topic="unknown", partitions=[0]),
        TopicPartitions(topic="b", partitions=[]),
    ]
    assert await sizes(client, expected) == {"a-0": found["a-0"]}


async def test_nothing_is_loaded_to_be_measured(stage: Stage) -> None:
    client = await stage.client("a")
    await client.produce("a", batch(b"x" * 50))
    found = await sizes(client)
    await stage.broker.stop()
    async with running(stage.stores) as broker:
        client = await Stage(stage.stores, broker).client()
        assert await sizes(client) == found
        assert not broker.topics


async def test_the_disk(stage: Stage) -> None:
    async with running(stage.stores) as broker:
        outcomes = Stage(stage.stores, broker, data_dir="/there", room=lambda: (10, 3))
        received = await (await outcomes.client()).exchange(DescribeLogDirsRequest(topics=[]))
        assert received.results == [
            DescribedLogDir(
                error_code=0, log_dir="/there", topics=[], total_bytes=10, usable_bytes=3
            )
        ]


async def test_whoever_leads_stays(stage: Stage) -> None:
    client = await stage.client("a")
    expected = [
        TopicPartitions(topic="a", partitions=[0, 1]),
        TopicPartitions(topic="u", partitions=[0]),
    ]
    received = await client.exchange(ElectLeadersRequest(topic_partitions=expected))
    assert [
        [(part.partition_id, part.error_code) for part in topic.partition_result]
        for topic in received.replica_election_results
    ] == [
        [(0, errors.ELECTION_NOT_NEEDED), (1, errors.UNKNOWN_TOPIC)],
        [(0, errors.UNKNOWN_TOPIC)],
    ]
    everything = await client.exchange(ElectLeadersRequest(topic_partitions=None))
    assert (everything.error_code, everything.replica_election_results) == (0, [])


async def test_nothing_is_on_its_way(stage: Stage) -> None:
    client = await stage.client("a")
    received = await client.exchange(ListPartitionReassignmentsRequest())
    assert (received.error_code, received.topics) == (0, [])


async def test_partitions_may_be_moved_to_where_they_are(stage: Stage) -> None:
    client = await stage.client("a")
    wishes: list[tuple[str, int, list[int] | None]] = [
        ("a", 0, [0]),
        ("a", 0, [1]),
        ("a", 0, [0, 1]),
        ("a", 0, []),
        ("a", 0, None),
        ("a", 7, [0]),
        ("unknown", 0, [0]),
    ]
    topics = [
        ReassignedTopic(
            name=name, partitions=[ReassignedPartition(partition_index=index, replicas=replicas)]
        )
        for name, index, replicas in wishes
    ]
    outcomes = await client.exchange(AlterPartitionReassignmentsRequest(topics=topics))
    assert (outcomes.error_code, outcomes.error_message) == (0, None)
    wrong = errors.INVALID_REPLICA_ASSIGNMENT
    assert [topic.partitions[0].error_code for topic in outcomes.responses] == [
        0,
        wrong,
        wrong,
        wrong,
        errors.NO_REASSIGNMENT_IN_PROGRESS,
        errors.UNKNOWN_TOPIC,
        errors.UNKNOWN_TOPIC,
    ]
    assert outcomes.responses[0].partitions[0].error_message is None
    assert outcomes.responses[1].partitions[0].error_message


async def test_the_directory_is_what_it_is(stage: Stage) -> None:
    stage = Stage(stage.stores, stage.broker, data_dir="/there")
    client = await stage.client("a")
    topics = [
        AlteredDirTopic(name="a", partitions=[0, 7]),
        AlteredDirTopic(name="unknown", partitions=[0]),
    ]
    dirs = [AlteredDir(path=path, topics=topics) for path in ("/there", "/elsewhere")]
    outcomes = await client.exchange(AlterReplicaLogDirsRequest(dirs=dirs))
    unknown = errors.UNKNOWN_TOPIC
    assert [[part.error_code for part in one.partitions] for one in outcomes.results] == [
        [0, unknown],
        [unknown],
        [errors.LOG_DIR_NOT_FOUND, unknown],
        [unknown],
    ]
