"""Groups and what they have committed, as a client sees them."""

from __future__ import annotations

from typing import Any

from core.testing.bench import settled
from wire.kafka import errors
from wire.kafka.messages.basics import FindCoordinatorRequest
from wire.kafka.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinProtocol,
    LeaveGroupRequest,
    LeaveMember,
    SyncAssignment,
    SyncGroupRequest,
)
from wire.kafka.messages.offsets import (
    CommitPartition,
    CommitTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from wire.kafka.session.tests.conftest import Client, Stage
from wire.kafka.tests.batch import batch


def join(member_id: str = "", session_ms: int = 10_000, group: str = "g") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinProtocol(name="range", metadata=b"m")],
    )


async def member(client: Client) -> Any:
    """Join with the id that was asked for, and take everything on."""
    told = await client.hears(join())
    assert told.error_code == errors.MEMBER_ID_REQUIRED
    joined = await client.hears(join(told.member_id))
    assert (joined.error_code, joined.leader) == (0, joined.member_id)
    synced = await client.hears(
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
    asked = OffsetFetchRequest(groups=[FetchOffsetsGroup(group_id=group, topics=topics)])
    part = (await client.hears(asked, 8)).groups[0].topics[0].partitions[0]
    assert part.error_code == 0
    return part.committed_offset, part.metadata


async def test_a_member_from_joining_to_leaving(stage: Stage) -> None:
    client = await stage.client()
    found = await client.hears(FindCoordinatorRequest(coordinator_keys=["g"]))
    assert found.coordinators[0].port == stage.front.options.port
    joined = await member(client)
    beat = HeartbeatRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert (await client.hears(beat)).error_code == 0
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    assert [one.error_code for one in (await client.hears(leaving)).members] == [0]
    assert (await client.hears(beat)).error_code == errors.UNKNOWN_MEMBER_ID


async def test_what_cannot_be_joined(stage: Stage) -> None:
    client = await stage.client()
    assert (await client.hears(join(session_ms=1))).error_code == errors.INVALID_SESSION_TIMEOUT
    assert (await client.hears(join(group=""))).error_code == errors.INVALID_GROUP_ID
    beat = HeartbeatRequest(group_id="none", generation_id=1, member_id="m")
    assert (await client.hears(beat)).error_code == errors.UNKNOWN_MEMBER_ID


async def test_commits_are_kept_and_are_a_subscription(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"), batch(b"d"))
    joined = await member(client)
    assert await committed(client) == (-1, "")
    done = await client.hears(commit(3, joined, "mine"), 9)
    assert done.topics[0].partitions[0].error_code == 0
    assert await committed(client) == (3, "mine")
    (topic,) = stage.broker.topics.values()
    assert topic.subscriptions["g"].cursor.backlog == 1
    await stage.broker.unload(topic.name)
    assert await committed(await stage.client()) == (3, "mine")


async def test_an_earlier_offset_may_be_committed(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"), batch(b"c"))
    for offset in (3, 1, 2, 0):
        await client.hears(commit(offset), 9)
        assert await committed(client) == (offset, "")


async def test_who_may_commit(stage: Stage) -> None:
    client = await stage.client("t")

    async def code(request: OffsetCommitRequest) -> int:
        answer: int = (await client.hears(request, 9)).topics[0].partitions[0].error_code
        return answer

    joined = await member(client)
    assert await code(commit(0)) == errors.UNKNOWN_MEMBER_ID, "somebody is in"
    joined.generation_id += 1
    assert await code(commit(0, joined)) == errors.ILLEGAL_GENERATION
    joined.generation_id -= 1
    assert await code(commit(0, joined, "x" * 5000)) == errors.OFFSET_METADATA_TOO_LARGE
    assert await code(commit(0, joined)) == 0


async def test_a_round_is_awaited_without_holding_anybody_up(stage: Stage) -> None:
    first, second = await stage.client(), await stage.client()
    joined = await member(first)
    told = await second.hears(join())
    second.ask(join(told.member_id))
    await settled()
    assert second.hear() == []
    again = await first.hears(join(joined.member_id))
    (other,) = second.hear()
    assert again.generation_id == other.generation_id == 2
    assert {one.member_id for one in again.members} == {joined.member_id, told.member_id}
