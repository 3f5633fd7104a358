"""Groups as tools see them, with members and without."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.client import attached
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from magnetar.wire.kafka.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    LeaveMember,
    ListGroupsRequest,
)
from magnetar.wire.kafka.messages.offsets import (
    DeleteOffsetsPartition,
    DeleteOffsetsTopic,
    FetchOffsetsGroup,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from magnetar.wire.kafka.session.groups.tests.test_classic import (
    WANTS_T,
    commit,
    committed,
    join,
    member,
)
from magnetar.wire.kafka.tests.batch import batch


async def described(client: Client, group: str, version: int = 5) -> tuple[int, str, int]:
    (outcomes,) = (await client.exchange(DescribeGroupsRequest(groups=[group]), version)).groups
    return outcomes.error_code, outcomes.group_state, len(outcomes.members)


async def listed(client: Client, **filters: list[str]) -> list[tuple[str, str]]:
    received = await client.exchange(ListGroupsRequest(**filters))
    return [(group.group_id, group.group_state) for group in received.groups]


async def delete(client: Client, group: str) -> int:
    code: int = (
        (await client.exchange(DeleteGroupsRequest(groups_names=[group]))).results[0].error_code
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
    await client.exchange(commit(1, joined), 9)
    assert await delete(client, "g") == errors.NON_EMPTY_GROUP
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.exchange(leaving)
    assert await described(client, "g") == (0, "Empty", 0)
    assert await delete(client, "g") == 0
    assert await described(client, "g") == (0, "Dead", 0)
    assert await committed(client) == (-1, "")
    (topic,) = stage.broker.topics.values()
    assert not topic.subscriptions


async def test_what_a_member_does_not_want_may_be_forgotten(stage: Stage) -> None:
    client = await stage.client("t")
    await client.exchange(commit(0), 9)
    wants = ConsumerSubscription(topics=["other"])
    await member(client, b"\0\0" + b"".join(encoder(ConsumerSubscription, 0, False)(wants)))
    part = DeleteOffsetsTopic(name="t", partitions=[DeleteOffsetsPartition(partition_index=0)])
    requested = OffsetDeleteRequest(group_id="g", topics=[part])
    assert (await client.exchange(requested)).topics[0].partitions[0].error_code == 0
    assert await committed(client) == (-1, "")


async def test_members_whose_words_nobody_knows(stage: Stage) -> None:
    client = await stage.client("t")
    await member(client, b"whatever")
    requested = OffsetDeleteRequest(group_id="g", topics=[])
    assert (await client.exchange(requested)).error_code == errors.NON_EMPTY_GROUP


@pytest.mark.parametrize("version", range(7))
async def test_describing_in_each_version(stage: Stage, version: int) -> None:
    client = await stage.client("t")
    joined = await member(client)
    requested = DescribeGroupsRequest(groups=["g"])
    (outcomes,) = (await client.exchange(requested, version)).groups
    assert (outcomes.protocol_type, outcomes.protocol_data) == ("consumer", "range")
    (only,) = outcomes.members
    assert (only.member_id, only.client_id) == (joined.member_id, "c")
    assert (only.member_metadata, only.member_assignment) == (WANTS_T, b"all")
    assert outcomes.authorized_operations == -2147483648
    if version >= 3:
        requested.include_authorized_operations = True
        (outcomes,) = (await client.exchange(requested, version)).groups
        assert outcomes.authorized_operations == 328


async def test_a_round_has_neither_protocol_nor_assignments(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    await member(client)
    outcomes = await other.exchange(join())
    other.ask(join(outcomes.member_id))
    await settled()
    (outcomes,) = (await client.exchange(DescribeGroupsRequest(groups=["g"]))).groups
    assert (outcomes.group_state, outcomes.protocol_data) == ("PreparingRebalance", "")
    assert {(one.member_metadata, one.member_assignment) for one in outcomes.members} == {
        (b"", b"")
    }


@pytest.mark.parametrize("version", range(6))
async def test_listing_in_each_version(stage: Stage, version: int) -> None:
    client = await stage.client("t")
    await member(client)
    (outcomes,) = (await client.exchange(ListGroupsRequest(), version)).groups
    assert (outcomes.group_id, outcomes.protocol_type) == ("g", "consumer")
    assert outcomes.group_state == ("Stable" if version >= 4 else "")
    assert outcomes.group_type == ("classic" if version >= 5 else "")


async def test_a_group_keeps_its_type_when_nobody_is_in(stage: Stage) -> None:
    client = await stage.client("t")
    joined = await member(client)
    await client.exchange(commit(0, joined), 9)
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.exchange(leaving)
    for _ in range(3):
        await stage.front.services.groups.tick()
    assert stage.front.services.groups.all() == []
    (outcomes,) = (await client.exchange(ListGroupsRequest())).groups
    assert (outcomes.protocol_type, outcomes.group_state) == ("consumer", "Empty")
    (outcomes,) = (await client.exchange(DescribeGroupsRequest(groups=["g"]))).groups
    assert (outcomes.error_code, outcomes.protocol_type, outcomes.group_state) == (
        0,
        "consumer",
        "Empty",
    )


async def test_subscriptions_of_pulsars_among_the_groups(stage: Stage) -> None:
    client = await stage.client("t", "u")
    topic = await stage.broker.topic(TopicName.parse("t").partition(0))
    assert await listed(client) == []
    theirs = await attached(topic, SubscriptionType.SHARED, subscription="theirs", address="h:1")
    assert await listed(client) == [("theirs", "Stable")]
    (outcomes,) = (await client.exchange(DescribeGroupsRequest(groups=["theirs"]), 6)).groups
    (only,) = outcomes.members
    assert (outcomes.group_state, only.client_id, only.client_host) == ("Stable", "c", "/h")
    assignment, _ = decoder(ConsumerAssignment, 0, False)(only.member_assignment, 2)
    assert [(one.topic, one.partitions) for one in assignment.assigned_partitions] == [("t", [0])]
    assert await delete(client, "theirs") == errors.POLICY_VIOLATION
    topic.detach(theirs.consumer)
    assert await described(client, "theirs", 6) == (0, "Empty", 0)
    assert await delete(client, "theirs") == errors.POLICY_VIOLATION
    await stage.broker.unload(topic.name)
    assert await listed(client) == [("theirs", "Empty")]
    topic = await stage.broker.topic(TopicName.parse("t").partition(0))
    await topic.unsubscribe("theirs", force=False)
    assert await listed(client) == []


async def test_a_subscription_that_was_there_before_the_group_stays(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"))
    (topic,) = stage.broker.topics.values()
    await topic.subscription("g", start=(-1, -1))
    await client.exchange(commit(1, metadata="ours"), 9)
    assert await delete(client, "g") == 0
    assert await committed(client) == (1, ""), "Pulsar's subscription stands there now"
    assert await delete(client, "g") == errors.POLICY_VIOLATION


async def test_what_was_committed_outlives_its_group_and_this_server(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"))
    await client.exchange(commit(2), 9)
    other = (Stage(stage.stores, stage.broker)).front
    again = Client(other)
    assert await listed(again) == [("g", "Empty")]
    everything = OffsetFetchRequest(groups=[FetchOffsetsGroup(group_id="g", topics=None)])
    (group,) = (await again.exchange(everything, 8)).groups
    (topic,) = group.topics
    assert (topic.name, topic.partitions[0].committed_offset) == ("t", 2)


async def test_offsets_of_one_partition(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    part = DeleteOffsetsTopic(name="t", partitions=[DeleteOffsetsPartition(partition_index=0)])
    requested = OffsetDeleteRequest(group_id="g", topics=[part])
    assert (await client.exchange(requested)).error_code == errors.GROUP_ID_NOT_FOUND
    joined = await member(client)
    await client.exchange(commit(1, joined), 9)
    received = await client.exchange(requested)
    assert received.topics[0].partitions[0].error_code == errors.GROUP_SUBSCRIBED_TO_TOPIC
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveMember(member_id=joined.member_id)])
    await client.exchange(leaving)
    assert (await client.exchange(requested)).topics[0].partitions[0].error_code == 0
    assert await committed(client) == (-1, "")
