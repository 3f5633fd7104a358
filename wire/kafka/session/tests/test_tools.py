"""Groups as tools see them, with members and without."""

from __future__ import annotations

from wire.kafka import errors
from wire.kafka.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    LeaveMember,
    ListGroupsRequest,
)
from wire.kafka.messages.offsets import (
    DeleteOffsetsPartition,
    DeleteOffsetsTopic,
    FetchOffsetsGroup,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from wire.kafka.session.tests.conftest import Client, Stage
from wire.kafka.session.tests.test_groups import commit, committed, member
from wire.kafka.tests.batch import batch


async def described(client: Client, group: str, version: int = 5) -> tuple[int, str, int]:
    (told,) = (await client.hears(DescribeGroupsRequest(groups=[group]), version)).groups
    return told.error_code, told.group_state, len(told.members)


async def listed(client: Client, **filters: list[str]) -> list[tuple[str, str]]:
    heard = await client.hears(ListGroupsRequest(**filters))
    return [(group.group_id, group.group_state) for group in heard.groups]


async def delete(client: Client, group: str) -> int:
    code: int = (
        (await client.hears(DeleteGroupsRequest(groups_names=[group]))).results[0].error_code
    )
    return code


async def test_a_group_through_its_life(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"))
    assert await described(client, "g") == (0, "Dead", 0)
    assert await described(client, "g", 6) == (errors.GROUP_ID_NOT_FOUND, "Dead", 0)
    assert await delete(client, "g") == errors.GROUP_ID_NOT_FOUND
    joined = await member(client)
    assert await described(client, "g") == (0, "Stable", 1)
    assert await listed(client) == [("g", "Stable")]
    assert await listed(client, states_filter=["empty"]) == []
    assert await listed(client, types_filter=["consumer"]) == []
    await client.hears(commit(1, joined), 9)
    assert await delete(client, "g") == errors.NON_EMPTY_GROUP
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.hears(leaving)
    assert await described(client, "g") == (0, "Empty", 0)
    assert await delete(client, "g") == 0
    assert await described(client, "g") == (0, "Dead", 0)
    assert await committed(client) == (-1, "")
    (topic,) = stage.broker.topics.values()
    assert not topic.subscriptions


async def test_what_was_committed_outlives_its_group_and_this_server(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"))
    await client.hears(commit(2), 9)
    other = (Stage(stage.stores, stage.broker)).front
    again = Client(other)
    assert await listed(again) == [("g", "Empty")]
    everything = OffsetFetchRequest(groups=[FetchOffsetsGroup(group_id="g", topics=None)])
    (group,) = (await again.hears(everything, 8)).groups
    (topic,) = group.topics
    assert (topic.name, topic.partitions[0].committed_offset) == ("t", 2)


async def test_offsets_of_one_partition(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    part = DeleteOffsetsTopic(name="t", partitions=[DeleteOffsetsPartition(partition_index=0)])
    asked = OffsetDeleteRequest(group_id="g", topics=[part])
    assert (await client.hears(asked)).error_code == errors.GROUP_ID_NOT_FOUND
    joined = await member(client)
    await client.hears(commit(1, joined), 9)
    heard = await client.hears(asked)
    assert heard.topics[0].partitions[0].error_code == errors.GROUP_SUBSCRIBED_TO_TOPIC
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.hears(leaving)
    assert (await client.hears(asked)).topics[0].partitions[0].error_code == 0
    assert await committed(client) == (-1, "")
