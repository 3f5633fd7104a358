"""Members of classic groups, and who coordinates them, as a client sees it."""

from __future__ import annotations

from typing import Any

from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.basics import FindCoordinatorRequest
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerSubscription
from magnetar.wire.kafka.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinProtocol,
    LeaveGroupRequest,
    LeaveMember,
    SyncAssignment,
    SyncGroupRequest,
)
from magnetar.wire.kafka.messages.offsets import (
    CommitPartition,
    CommitTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
)

WANTS_T = b"\0\0" + b"".join(
    encoder(ConsumerSubscription, 0, False)(ConsumerSubscription(topics=["t"]))
)


def join(
    member_id: str = "", session_ms: int = 10_000, group: str = "g", metadata: bytes = WANTS_T
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinProtocol(name="range", metadata=metadata)],
    )


async def member(client: Client, metadata: bytes = WANTS_T) -> Any:
    """Join with the id that was asked for, and take everything on."""
    outcomes = await client.exchange(join(metadata=metadata))
    assert outcomes.error_code == errors.MEMBER_ID_REQUIRED
    joined = await client.exchange(join(outcomes.member_id, metadata=metadata))
    assert (joined.error_code, joined.leader) == (0, joined.member_id)
    synced = await client.exchange(
        SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[SyncAssignment(member_id=joined.member_id, assignment=b"all")],
        )
    )
    assert synced.assignment == b"all"
    return joined


def commit(offset: int, joined: Any = None, metadata: str = "") -> OffsetCommitRequest:
    part = CommitPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
        member_id="" if joined is None else joined.member_id,
        topics=[CommitTopic(name="t", partitions=[part])],
    )


async def committed(client: Client, group: str = "g") -> tuple[int, str | None]:
    topics = [FetchOffsetsTopic(name="t", partition_indexes=[0])]
    requested = OffsetFetchRequest(groups=[FetchOffsetsGroup(group_id=group, topics=topics)])
    part = (await client.exchange(requested, 8)).groups[0].topics[0].partitions[0]
    assert part.error_code == 0
    return part.committed_offset, part.metadata


async def test_a_member_from_joining_to_leaving(stage: Stage) -> None:
    client = await stage.client()
    found = await client.exchange(FindCoordinatorRequest(coordinator_keys=["g"]))
    assert found.coordinators[0].port == 9092
    joined = await member(client)
    beat = HeartbeatRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert (await client.exchange(beat)).error_code == 0
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    assert [one.error_code for one in (await client.exchange(leaving)).members] == [0]
    assert (await client.exchange(beat)).error_code == errors.UNKNOWN_MEMBER_ID


async def test_what_cannot_be_joined(stage: Stage) -> None:
    client = await stage.client()
    assert (await client.exchange(join(session_ms=1))).error_code == errors.INVALID_SESSION_TIMEOUT
    assert (await client.exchange(join(group=""))).error_code == errors.INVALID_GROUP_ID
    beat = HeartbeatRequest(group_id="none", generation_id=1, member_id="m")
    assert (await client.exchange(beat)).error_code == errors.UNKNOWN_MEMBER_ID
    beat = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
    assert (await client.exchange(beat)).error_code == errors.INVALID_GROUP_ID
    sync = SyncGroupRequest(group_id="", generation_id=1, member_id="m", assignments=[])
    assert (await client.exchange(sync)).error_code == errors.INVALID_GROUP_ID
    assert (await client.exchange(LeaveGroupRequest(group_id=""))).error_code == (
        errors.INVALID_GROUP_ID
    )
    assert (await client.exchange(join("unheard-of"))).error_code == errors.UNKNOWN_MEMBER_ID
    assert stage.front.services.groups.all() == []


async def test_who_coordinates(stage: Stage) -> None:
    client = await stage.client()
    for kind, code in ((0, 0), (1, 0), (2, errors.INVALID_REQUEST)):
        requested = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g", "h"])
        found = await client.exchange(requested)
        assert [(one.key, one.error_code) for one in found.coordinators] == [
            ("g", code),
            ("h", code),
        ]
        assert (
            await client.exchange(FindCoordinatorRequest(key="g", key_type=kind), 2)
        ).error_code == code


async def test_more_than_anybody_needs_in_one_request(stage: Stage) -> None:
    client = await stage.client()
    found = await client.exchange(FindCoordinatorRequest(coordinator_keys=[""] * 10_001))
    assert [one.error_code for one in found.coordinators] == [errors.INVALID_REQUEST]
    many = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id="m")] * 10_001)
    assert (await client.exchange(many)).error_code == errors.INVALID_REQUEST
    assert (await client.exchange(DescribeGroupsRequest(groups=["g"] * 10_001))).groups == []
    assert (await client.exchange(DeleteGroupsRequest(groups_names=["g"] * 10_001))).results == []


async def test_leaving_in_each_version(stage: Stage) -> None:
    client = await stage.client()
    joined = await member(client)
    assert (await client.exchange(LeaveGroupRequest(group_id="g", members=[]))).error_code == 0
    leaving = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    assert (await client.exchange(leaving, 2)).error_code == 0
    assert (await client.exchange(leaving, 2)).error_code == errors.UNKNOWN_MEMBER_ID


async def test_workers_of_kafka_connect(stage: Stage) -> None:
    """Another type, several protocols, and assignments that only its members understand."""
    clients = [await stage.client() for _ in range(2)]
    protocols = [JoinProtocol(name=name, metadata=name.encode()) for name in ("sessioned", "v0")]

    def joins(member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id="c",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="connect",
            protocols=protocols,
        )

    ids = [(await client.exchange(joins(""))).member_id for client in clients]
    for client, member_id in zip(clients, ids, strict=True):
        client.ask(joins(member_id))
    await settled()
    joined = [client.receive()[0] for client in clients]
    assert {(one.protocol_type, one.protocol_name) for one in joined} == {("connect", "sessioned")}
    leader = next(place for place, one in enumerate(joined) if one.leader == one.member_id)
    assert {one.metadata for one in joined[leader].members} == {b"sessioned"}

    def syncs(place: int, *assignments: SyncAssignment) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id="c",
            generation_id=1,
            member_id=ids[place],
            protocol_type="connect",
            protocol_name="sessioned",
            assignments=list(assignments),
        )

    tasks = [SyncAssignment(member_id=one, assignment=one.encode()) for one in ids]
    clients[1 - leader].ask(syncs(1 - leader))
    clients[leader].ask(syncs(leader, *tasks))
    await settled()
    received = [client.receive()[0].assignment.decode() for client in clients]
    assert received == ids
    (shown,) = (await clients[0].exchange(DescribeGroupsRequest(groups=["c"]))).groups
    assert (shown.group_state, shown.protocol_type) == ("Stable", "connect")


async def test_a_group_that_is_over_leaves_nothing(stage: Stage) -> None:
    client, groups = await stage.client(), stage.front.services.groups
    joined = await member(client)
    await groups.tick()
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.exchange(leaving)
    for _ in range(3):
        await groups.tick()
    assert groups.all() == []
    assert await stage.front.services.group_records.names() == []


async def test_a_round_is_awaited_without_holding_anybody_up(stage: Stage) -> None:
    first, second = await stage.client(), await stage.client()
    joined = await member(first)
    outcomes = await second.exchange(join())
    second.ask(join(outcomes.member_id))
    await settled()
    assert second.receive() == []
    again = await first.exchange(join(joined.member_id))
    (other,) = second.receive()
    assert again.generation_id == other.generation_id == 2
    assert {one.member_id for one in again.members} == {joined.member_id, outcomes.member_id}
