"""Clients are sent to the broker that owns what they ask for, in Kafka's own words."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.broker import Stores, running
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    LISTENER_NOT_FOUND,
    NONE,
    NOT_COORDINATOR,
    NOT_LEADER,
    UNKNOWN_MEMBER_ID,
)
from magnetar.wire.kafka.messages.basics import (
    DescribeClusterRequest,
    DescribeTopic,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from magnetar.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from magnetar.wire.kafka.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinProtocol,
    LeaveGroupRequest,
    LeaveMember,
    SyncGroupRequest,
)
from magnetar.wire.kafka.messages.offsets import (
    CommitPartition,
    CommitTopic,
    FetchOffsetsGroup,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from magnetar.wire.kafka.messages.transactions import AddOffsetsToTxnRequest, InitProducerIdRequest
from magnetar.wire.kafka.tests.batch import batch

PEER = Peer(7, {"kafka": "[::1]:1234", "pulsar": "b:6650"})
SILENT = Peer(8, {"kafka_tls": "b:9093"})
"""Has no listener that this client knows."""
OURS, THEIRS, NOBODYS = "ours", "theirs", "nobodys"
"""Topics, and groups and transactions, of this broker, of a peer, and of one out of reach."""


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    table = OwnershipTable(PEER, SILENT)
    for name, peer in ((THEIRS, PEER), (NOBODYS, SILENT)):
        table.groups[name] = table.transactions[name] = peer
    async with running(Stores(), table) as broker:
        for name in (OURS, THEIRS, NOBODYS):
            await broker.topic(TopicName.parse(name))
        await broker.catalog.create_partitioned(TopicName.parse("mixed"), 3)
        await unloaded(broker)
        for name, peer in ((THEIRS, PEER), (NOBODYS, SILENT), ("mixed-partition-1", PEER)):
            table.topics[TopicName.parse(name).full] = peer
        yield await Stage(Stores(), broker).client()


async def unloaded(broker: Broker) -> None:
    for topic in list(broker.topics.values()):
        assert isinstance(topic, PersistentTopic)
        await broker.unload(topic.name)


async def test_metadata_names_the_owner_of_each_partition(client: Client) -> None:
    expected = [MetadataRequestTopic(name=name) for name in (OURS, THEIRS, NOBODYS, "mixed")]
    received = await client.exchange(MetadataRequest(topics=expected), 9)
    here, there = received.brokers
    assert (here.node_id, here.port) == (0, 9092)
    assert (there.node_id, there.host, there.port) == (7, "::1", 1234)
    leaders = [
        [(part.error_code, part.leader_id, part.replica_nodes) for part in topic.partitions]
        for topic in received.topics
    ]
    assert leaders == [
        [(NONE, 0, [0])],
        [(NONE, 7, [7])],
        [(LISTENER_NOT_FOUND, -1, [])],
        [(NONE, 0, [0]), (NONE, 7, [7]), (NONE, 0, [0])],
    ]


async def test_tools_are_told_the_same(client: Client) -> None:
    received = await client.exchange(
        DescribeClusterRequest(include_cluster_authorized_operations=False)
    )
    assert [(one.broker_id, one.port) for one in received.brokers] == [(0, 9092), (7, 1234)]
    requested = DescribeTopicPartitionsRequest(topics=[DescribeTopic(name=THEIRS)])
    received = await client.exchange(requested)
    (part,) = received.topics[0].partitions
    assert (part.error_code, part.leader_id) == (NONE, 7)


@pytest.mark.parametrize("key_type", [0, 1])
async def test_a_coordinator_is_found_where_it_is(client: Client, key_type: int) -> None:
    requested = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[OURS, THEIRS, NOBODYS])
    received = await client.exchange(requested, 4)
    found = [(one.key, one.error_code, one.node_id, one.port) for one in received.coordinators]
    assert found == [
        (OURS, NONE, 0, 9092),
        (THEIRS, NONE, 7, 1234),
        (NOBODYS, COORDINATOR_NOT_AVAILABLE, -1, -1),
    ]
    received = await client.exchange(FindCoordinatorRequest(key=THEIRS, key_type=key_type), 3)
    assert (received.error_code, received.node_id, received.host, received.port) == (
        NONE,
        7,
        "::1",
        1234,
    )


async def test_a_partition_of_a_peer_is_neither_written_nor_read(client: Client) -> None:
    assert (await client.produce(THEIRS, batch(b"x"))).error_code == NOT_LEADER
    assert (await client.fetch(THEIRS, 0)).error_code == NOT_LEADER
    assert (await client.produce(OURS, batch(b"x"))).error_code == NONE
    assert set(client.front.services.broker.topics) == {TopicName.parse(OURS).full}


async def test_a_group_of_a_peer_is_not_coordinated_here(client: Client) -> None:
    protocols = [JoinProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(
        group_id=THEIRS,
        session_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    beat = HeartbeatRequest(group_id=THEIRS, generation_id=1, member_id="m")
    sync = SyncGroupRequest(group_id=THEIRS, generation_id=1, member_id="m", assignments=[])
    for request in (join, beat, sync):
        assert (await client.exchange(request, 3)).error_code == NOT_COORDINATOR
    part = CommitPartition(partition_index=0, committed_offset=0, committed_metadata=None)
    topics = [CommitTopic(name=OURS, partitions=[part])]
    commit = OffsetCommitRequest(group_id=THEIRS, member_id="", topics=topics)
    leave = LeaveGroupRequest(group_id=THEIRS, members=[LeaveMember(member_id="m")])
    assert (await client.exchange(leave)).error_code == NOT_COORDINATOR
    received = await client.exchange(commit, 8)
    assert received.topics[0].partitions[0].error_code == NOT_COORDINATOR
    fetch = OffsetFetchRequest(groups=[FetchOffsetsGroup(group_id=THEIRS, topics=None)])
    assert (await client.exchange(fetch, 8)).groups[0].error_code == NOT_COORDINATOR
    newer = ConsumerGroupHeartbeatRequest(group_id=THEIRS, member_id="m", member_epoch=1)
    assert (await client.exchange(newer)).error_code == NOT_COORDINATOR
    received = await client.exchange(DescribeGroupsRequest(groups=[THEIRS, "never"]), 6)
    assert [one.error_code for one in received.groups] == [NOT_COORDINATOR, GROUP_ID_NOT_FOUND]
    requested = ConsumerGroupDescribeRequest(
        group_ids=[THEIRS], include_authorized_operations=False
    )
    received = await client.exchange(requested)
    assert received.groups[0].error_code == NOT_COORDINATOR
    received = await client.exchange(DeleteGroupsRequest(groups_names=[THEIRS]))
    assert received.results[0].error_code == NOT_COORDINATOR
    received = await client.exchange(OffsetDeleteRequest(group_id=THEIRS, topics=[]))
    assert received.error_code == NOT_COORDINATOR
    assert client.front.services.groups.all() == []
    ours = HeartbeatRequest(group_id=OURS, generation_id=1, member_id="m")
    assert (await client.exchange(ours, 3)).error_code == UNKNOWN_MEMBER_ID


async def test_a_transaction_of_a_peer_is_not_coordinated_here(client: Client) -> None:
    begin = InitProducerIdRequest(transactional_id=THEIRS, transaction_timeout_ms=1000)
    received = await client.exchange(begin)
    assert (received.error_code, received.producer_epoch) == (NOT_COORDINATOR, -1)
    add = AddOffsetsToTxnRequest(
        transactional_id=THEIRS, producer_id=1, producer_epoch=0, group_id="g"
    )
    assert (await client.exchange(add)).error_code == NOT_COORDINATOR
    assert list(client.front.services.transactions.all()) == []
    begin = InitProducerIdRequest(transactional_id=OURS, transaction_timeout_ms=1000)
    assert (await client.exchange(begin)).error_code == NONE
