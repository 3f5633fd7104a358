"""Groups of the newer protocol, as clients and tools see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.groups.consumer.heartbeat import Topics
from magnetar.wire.kafka.groups.group_records import GroupRecord
from magnetar.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    TopicIdPartitions,
)
from magnetar.wire.kafka.messages.groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
)
from magnetar.wire.kafka.messages.offsets import (
    CommitPartition,
    CommitTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from magnetar.wire.kafka.session.groups.tests.test_classic import commit, committed, join, member


class Reader:
    """A client that is a member: it reads what it is told."""

    def __init__(self, client: Client, member_id: str, group: str = "g") -> None:
        self.client = client
        self.id = member_id
        self.group = group
        self.epoch = 0
        self.reads: dict[bytes, list[int]] = {}

    async def join(self, *names: str, version: int = 1, **more: Any) -> Any:
        self.epoch, self.reads = 0, {}
        more.setdefault("subscribed_topic_names", list(names) or None)
        more.setdefault("topic_partitions", [])
        return await self.beat(version, rebalance_timeout_ms=60_000, **more)

    async def beat(self, version: int = 1, **more: Any) -> Any:
        """One heartbeat, with what it reads now."""
        owned = [TopicIdPartitions(topic_id=t, partitions=n) for t, n in self.reads.items()]
        more.setdefault("topic_partitions", owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.id, member_epoch=self.epoch, **more
        )
        results = await self.client.exchange(request, version)
        if results.error_code == errors.NONE:
            self.epoch = results.member_epoch
            if results.assignment is not None:
                held = results.assignment.topic_partitions
                self.reads = {one.topic_id: one.partitions for one in held}
        return results

    @property
    def count(self) -> int:
        return sum(map(len, self.reads.values()))


async def made(stage: Stage, name: str, partitions: int) -> bytes:
    topic = TopicName.parse(name)
    await administration.create_partitioned(stage.broker, topic, partitions)
    return await stage.broker.topic_ids.of(topic)


async def describe(client: Client, group: str = "g") -> Any:
    requested = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    (results,) = (await client.exchange(requested)).groups
    return results


async def test_two_share_a_topic(stage: Stage) -> None:
    topic = await made(stage, "t", 4)
    first, second = [Reader(await stage.client(), name) for name in "ab"]
    results = await first.join("t", "not-there")
    assert (results.error_code, results.member_id, results.heartbeat_interval_ms) == (0, "a", 5000)
    assert first.reads == {topic: [0, 1, 2, 3]}
    await second.join("t")
    assert second.count == 0
    await first.beat()
    assert first.count == 2
    await first.beat()
    results = await second.beat()
    assert second.count == 2
    assert sorted(first.reads[topic] + second.reads[topic]) == [0, 1, 2, 3]
    assert (await second.beat()).assignment is None
    first.epoch = -1
    assert (await first.beat()).member_epoch == -1
    await second.beat()
    assert second.count == 4


async def test_partitions_that_are_added_are_seen(stage: Stage) -> None:
    await made(stage, "t", 1)
    reader = Reader(await stage.client(), "a")
    await reader.join("t")
    await administration.grow_partitioned(stage.broker, TopicName.parse("t"), 3)
    await reader.beat()
    assert reader.count == 1, "not looked at so often"
    stage.stores.clock.forward(2)
    await reader.beat()
    assert reader.count == 3


async def test_a_pattern(stage: Stage) -> None:
    await made(stage, "logs-a", 2)
    await made(stage, "other", 2)
    reader = Reader(await stage.client(), "a")
    await reader.join(subscribed_topic_regex="logs-.*")
    assert reader.count == 2
    await made(stage, "logs-b", 1)
    stage.stores.clock.forward(3)
    await reader.beat()
    assert reader.count == 3
    results = await reader.beat(subscribed_topic_regex="(?=x)")
    assert results.error_code == errors.INVALID_REGULAR_EXPRESSION
    assert results.error_message


@pytest.mark.parametrize(
    ("version", "change", "code"),
    [
        (1, {"group_id": ""}, errors.INVALID_REQUEST),
        (1, {"member_id": ""}, errors.INVALID_REQUEST),
        (0, {"member_id": ""}, errors.NONE),
        (1, {"instance_id": ""}, errors.INVALID_REQUEST),
        (1, {"rack_id": ""}, errors.INVALID_REQUEST),
        (1, {"member_epoch": -3}, errors.INVALID_REQUEST),
        (1, {"member_epoch": -2}, errors.INVALID_REQUEST),
        (1, {"member_epoch": -1}, errors.UNKNOWN_MEMBER_ID),
        (1, {"member_epoch": 7}, errors.UNKNOWN_MEMBER_ID),
        (1, {"rebalance_timeout_ms": -1}, errors.INVALID_REQUEST),
        (1, {"topic_partitions": None}, errors.INVALID_REQUEST),
        (1, {"subscribed_topic_names": None}, errors.INVALID_REQUEST),
        (1, {"subscribed_topic_names": ["t"] * 10_001}, errors.INVALID_REQUEST),
        (1, {"server_assignor": "mine"}, errors.UNSUPPORTED_ASSIGNOR),
        (1, {"subscribed_topic_names": ["?", "a/b", ""]}, errors.NONE),
    ],
)
async def test_what_no_member_would_say(
    stage: Stage, version: int, change: dict[str, Any], code: int
) -> None:
    client = await stage.client()
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": "a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    results = await client.exchange(ConsumerGroupHeartbeatRequest(**(fields | change)), version)
    assert results.error_code == code
    if code == errors.NONE:
        assert results.member_id
    else:
        for _ in range(3):
            await stage.front.services.groups.tick()
        assert stage.front.services.groups.all() == []
        assert await stage.front.services.group_records.names() == []


async def test_commits_with_epochs_and_ids(stage: Stage) -> None:
    topic = await made(stage, "t", 1)
    reader = Reader(await stage.client(), "a")
    await reader.join("t")
    client = reader.client

    async def code(epoch: int, version: int, topic_id: bytes = topic) -> int:
        part = CommitPartition(partition_index=0, committed_offset=0, committed_metadata="")
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=epoch,
            member_id=reader.id,
            topics=[CommitTopic(name="t", topic_id=topic_id, partitions=[part])],
        )
        (results,) = (await client.exchange(request, version)).topics
        assert results.topic_id == (topic_id if version == 10 else bytes(16))
        found: int = results.partitions[0].error_code
        return found

    assert await code(1, 9) == await code(1, 10) == errors.NONE
    assert await code(2, 9) == errors.STALE_MEMBER_EPOCH
    assert await code(1, 8) == errors.UNSUPPORTED_VERSION
    assert await code(1, 10, b"x" * 16) == errors.UNKNOWN_TOPIC_ID
    results = (await client.exchange(commit(0), 9)).topics[0].partitions[0]
    assert results.error_code == errors.UNKNOWN_MEMBER_ID, "somebody is in"


async def test_fetching_with_epochs_and_ids(stage: Stage) -> None:
    topic = await made(stage, "t", 1)
    reader = Reader(await stage.client(), "a")
    await reader.client.exchange(commit(0), 9)
    await reader.join("t")

    async def fetched(topics: Any, **more: Any) -> Any:
        groups = [FetchOffsetsGroup(group_id="g", topics=topics, **more)]
        return (await reader.client.exchange(OffsetFetchRequest(groups=groups), 10)).groups[0]

    for topics in (None, [FetchOffsetsTopic(topic_id=topic, partition_indexes=[0])]):
        results = await fetched(topics, member_id="a", member_epoch=1)
        assert (results.topics[0].topic_id, results.error_code) == (topic, 0)
        assert results.topics[0].partitions[0].committed_offset == 0
    assert (await fetched(None)).error_code == 0, "a tool asks"
    results = await fetched(None, member_id="a", member_epoch=2)
    assert results.error_code == errors.STALE_MEMBER_EPOCH
    results = await fetched(None, member_id="b", member_epoch=1)
    assert results.error_code == errors.UNKNOWN_MEMBER_ID
    results = await fetched([FetchOffsetsTopic(topic_id=b"x" * 16, partition_indexes=[0])])
    assert results.error_code == 0
    assert results.topics[0].partitions[0].error_code == errors.UNKNOWN_TOPIC_ID
    stage.front.services.groups.forget("g")
    results = await fetched(None, member_id="a", member_epoch=1)
    assert results.error_code == 0, "its next heartbeat tells it"


async def test_describing(stage: Stage) -> None:
    topic = await made(stage, "t", 2)
    reader = Reader(await stage.client(), "a")
    assert (await describe(reader.client)).error_code == errors.GROUP_ID_NOT_FOUND
    await reader.join("t", server_assignor="range")
    results = await describe(reader.client)
    assert (results.error_code, results.group_state, results.assignor_name) == (
        0,
        "Stable",
        "range",
    )
    assert (results.group_epoch, results.assignment_epoch) == (1, 1)
    assert results.authorized_operations == 328
    (only,) = results.members
    assert (only.member_id, only.member_epoch, only.client_id) == ("a", 1, "c")
    assert (only.subscribed_topic_names, only.member_type) == (["t"], 1)
    for assignment in (only.assignment, only.target_assignment):
        (held,) = assignment.topic_partitions
        assert (held.topic_id, held.topic_name, held.partitions) == (topic, "t", [0, 1])
    listed = (await reader.client.exchange(ListGroupsRequest())).groups
    assert [(one.group_id, one.group_type, one.protocol_type) for one in listed] == [
        ("g", "consumer", "consumer")
    ]
    (older,) = (await reader.client.exchange(DescribeGroupsRequest(groups=["g"]), 6)).groups
    assert older.error_code == errors.GROUP_ID_NOT_FOUND


async def test_a_group_that_is_over(stage: Stage) -> None:
    await made(stage, "t", 1)
    reader = Reader(await stage.client(), "a")

    async def leave() -> None:
        reader.epoch = -1
        await reader.beat()
        for _ in range(3):
            await stage.front.services.groups.tick()
        assert stage.front.services.groups.all() == []

    await reader.join("t")
    await leave()
    assert (await describe(reader.client)).error_code == errors.GROUP_ID_NOT_FOUND
    await reader.client.exchange(commit(0), 9)
    await reader.join("t")
    await leave()
    results = await describe(reader.client)
    assert (results.error_code, results.group_state) == (0, "Empty")
    assert await committed(reader.client) == (0, "")


async def test_who_says_nothing_of_topics_does_not_mix(stage: Stage) -> None:
    await made(stage, "t", 1)
    reader, other = Reader(await stage.client(), "a"), await stage.client()
    await reader.join("t")
    results = await other.exchange(join("m", metadata=b"?"))
    assert results.error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="a")
    assert (await other.exchange(beat)).error_code == errors.UNKNOWN_MEMBER_ID
    reader.epoch = -1
    await reader.beat()
    joined = await member(other, b"?")
    assert (await reader.join("t")).error_code == errors.GROUP_ID_NOT_FOUND
    reader.epoch = 1
    assert (await reader.beat()).error_code == errors.GROUP_ID_NOT_FOUND
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await other.exchange(beat)).error_code == errors.NONE


async def look_meanwhile(stage: Stage, meanwhile: Callable[[], Awaitable[object]]) -> None:
    """Whenever topics are looked up, that happens before they are found."""
    find = stage.front.services.lookups.find

    async def found(names: set[str], patterns: set[str]) -> Topics:
        await meanwhile()
        return await find(names, patterns)

    stage.front.services.lookups.find = found  # type: ignore[assignment,method-assign]


async def test_a_group_does_not_go_back_while_somebody_comes_for_whom_it_went_over(
    stage: Stage,
) -> None:
    """Found by chance, in 2 of 140 joins: the tick saw classic members only."""
    await made(stage, "t", 2)
    reader, older = Reader(await stage.client(), "a"), await stage.client()
    await member(older)
    await look_meanwhile(stage, stage.front.services.groups.tick)
    assert (await reader.join("t")).error_code == errors.NONE
    await stage.front.services.groups.tick()
    results = await describe(older)
    assert [one.member_type for one in results.members] == [0, 1]


async def test_a_group_is_not_over_while_somebody_is_about_to_join(stage: Stage) -> None:
    await made(stage, "t", 1)
    reader = Reader(await stage.client(), "a")
    await look_meanwhile(stage, stage.front.services.groups.tick)
    assert (await reader.join("t")).error_code == errors.NONE
    assert stage.front.services.groups.consumer("g") is not None
    assert await stage.front.services.group_records.find("g") == GroupRecord("consumer", "consumer")


async def test_classic_members_that_come_first_after_all_go_over_too(stage: Stage) -> None:
    await made(stage, "t", 2)
    newer, older = await stage.client(), await stage.client()
    go_on = trio.Event()
    await look_meanwhile(stage, go_on.wait)
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        rebalance_timeout_ms=60_000,
    )
    newer.ask(request, 1)
    await settled()
    await member(older)
    go_on.set()
    await settled()
    (results,) = newer.receive()
    assert results.error_code == errors.NONE
    assert len((await describe(older)).members) == 2


async def test_a_join_in_vain_leaves_nothing(stage: Stage) -> None:
    async def fails() -> None:
        raise StorageFailed("for now")

    reader = Reader(await stage.client(), "a")
    await look_meanwhile(stage, fails)
    assert (await reader.join("t")).error_code != errors.NONE
    for _ in range(2):
        await stage.front.services.groups.tick()
    assert stage.front.services.groups.all() == []


async def test_after_a_restart_members_go_on(stage: Stage) -> None:
    await made(stage, "t", 2)
    readers = [Reader(await stage.client(), name) for name in "ab"]
    for _ in range(2):
        for reader in readers:
            await (reader.beat() if reader.epoch else reader.join("t"))
    await readers[0].beat()
    await readers[1].beat()
    assert [reader.count for reader in readers] == [1, 1]
    again = Stage(stage.stores, stage.broker)
    await again.front.open()
    owned = [FetchOffsetsGroup(group_id="g", topics=None, member_id="b", member_epoch=2)]
    for reader in readers:
        reader.client = await again.client()
    (fetched,) = (await readers[1].client.exchange(OffsetFetchRequest(groups=owned), 10)).groups
    assert fetched.error_code == errors.NONE
    for reader in (*readers, *readers):
        assert (await reader.beat()).error_code == errors.NONE
        assert reader.count == 1, "nothing has changed hands"
    owned[0].member_id = "c"
    (fetched,) = (await readers[1].client.exchange(OffsetFetchRequest(groups=owned), 10)).groups
    assert fetched.error_code == errors.UNKNOWN_MEMBER_ID
