"""What groups commit, and who may."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import settled
from magnetar.core.testing.client import attached
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.offsets import (
    CommitPartition,
    CommitTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from magnetar.wire.kafka.session.groups.tests.test_classic import commit, committed, member
from magnetar.wire.kafka.tests.batch import batch


def loaded(stage: Stage) -> PersistentTopic:
    (topic,) = stage.broker.topics.values()
    assert isinstance(topic, PersistentTopic)
    return topic


async def code(client: Client, request: OffsetCommitRequest, version: int = 9) -> int:
    answer: int = (await client.exchange(request, version)).topics[0].partitions[0].error_code
    return answer


async def test_commits_are_kept_and_are_a_subscription(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"), batch(b"d"))
    joined = await member(client)
    assert await committed(client) == (-1, "")
    done = await client.exchange(commit(3, joined, "mine"), 9)
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
        await client.exchange(commit(offset), 9)
        assert await committed(client) == (offset, "")


async def test_who_may_commit(stage: Stage) -> None:
    client = await stage.client("t")

    async def code(request: OffsetCommitRequest) -> int:
        answer: int = (await client.exchange(request, 9)).topics[0].partitions[0].error_code
        return answer

    stranger = commit(0)
    stranger.member_id = "an id of its own"
    assert await code(stranger) == 0, "nobody is in"
    joined = await member(client)
    for request in (commit(0), stranger):
        assert await code(request) == errors.UNKNOWN_MEMBER_ID, "somebody is in"
    joined.generation_id += 1
    assert await code(commit(0, joined)) == errors.ILLEGAL_GENERATION
    joined.generation_id -= 1
    assert await code(commit(0, joined, "x" * 5000)) == errors.OFFSET_METADATA_TOO_LARGE
    assert await code(commit(0, joined)) == 0


async def test_a_note_is_stored_with_its_offset(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    for note in ("one", "", "zwei \U0001f30d"):
        assert await code(client, commit(1, metadata=note)) == 0
        assert await committed(client) == (1, note)
    assert loaded(stage).subscriptions["g"].cursor.properties == {"kafka.group": "true"}


async def test_those_of_one_connection_are_done_in_order(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"), batch(b"c"))
    for _ in range(20):
        client.ask(commit(1), 9)
        client.ask(commit(2), 9)
        await settled()
        assert len(client.receive()) == 2
        assert await committed(client) == (2, "")


async def test_nothing_is_answered_before_it_is_stored(slow_stage: Stage) -> None:
    stage = slow_stage
    client = await stage.client("t")
    client.ask(commit(0), 9)
    await settled()
    assert client.receive() == []
    stage.stores.ledgers.sync()
    await settled()
    assert client.receive()[0].topics[0].partitions[0].error_code == 0


async def test_many_partitions_wait_for_storage_together(slow_stage: Stage) -> None:
    stage = slow_stage
    names = [f"t{number}" for number in range(150)]
    client = await stage.client(*names)
    part = CommitPartition(partition_index=0, committed_offset=0, committed_metadata="")
    topics = [CommitTopic(name=name, partitions=[part]) for name in [*names, "none"]]
    client.ask(OffsetCommitRequest(group_id="g", member_id="", topics=topics), 9)
    await settled()
    stage.stores.ledgers.sync()
    await settled()
    (received,) = client.receive()
    codes = {topic.name: topic.partitions[0].error_code for topic in received.topics}
    assert codes.pop("none") == errors.UNKNOWN_TOPIC
    assert codes == dict.fromkeys(names, 0)


async def test_what_cannot_be_committed(stage: Stage) -> None:
    client = await stage.client("t")
    request = commit(0)
    for name in ("", ".", "pulsar.dedup", "__compaction"):
        request.group_id = name
        assert await code(client, request) == errors.INVALID_GROUP_ID
    assert await stage.front.services.group_records.names() == []
    assert await committed(client, "") == (-1, "")


async def test_an_offset_may_be_less_than_nothing(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"))
    for offset in (2, -2, -1):
        assert await code(client, commit(offset, metadata="as KafkaJS resets")) == 0
        assert await committed(client) == (offset, "as KafkaJS resets")
    await stage.broker.unload(loaded(stage).name)
    assert await committed(client) == (-1, "as KafkaJS resets")


@pytest.mark.parametrize("version", [9, 10])
async def test_classic_members_may_say_their_generation(stage: Stage, version: int) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    assert await code(client, commit(1)) == 0
    topic_id = await stage.broker.topic_ids.of(TopicName.parse("t"))
    part = FetchOffsetsTopic(name="t", topic_id=topic_id, partition_indexes=[0])

    async def results(member_id: str, generation: int) -> tuple[int, int]:
        requested = FetchOffsetsGroup(
            group_id="g", member_id=member_id, member_epoch=generation, topics=[part]
        )
        (group,) = (await client.exchange(OffsetFetchRequest(groups=[requested]), version)).groups
        return group.error_code, group.topics[0].partitions[0].committed_offset

    assert await results("forgotten", 4) == (0, 1), "nobody is in"
    joined = await member(client)
    assert await results(joined.member_id, joined.generation_id) == (0, 1)
    assert await results(joined.member_id, joined.generation_id + 1) == (0, 1), "as in Kafka"


async def test_storage_that_fails_is_worth_another_try(stage: Stage) -> None:
    client = await stage.client("t")
    assert await code(client, commit(0)) == 0
    await stage.broker.unload(loaded(stage).name)

    async def fails(path: str) -> None:
        raise StorageFailed(path)

    stage.stores.metadata.get, get = fails, stage.stores.metadata.get
    stage.broker.catalog._cache.clear()
    part = FetchOffsetsTopic(name="t", partition_indexes=[0])
    groups = [FetchOffsetsGroup(group_id="g", topics=[part])]
    received = await client.exchange(OffsetFetchRequest(groups=groups), 8)
    assert received.groups[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert await code(client, commit(0)) == errors.COORDINATOR_NOT_AVAILABLE
    stage.stores.metadata.get = get
    assert await committed(client) == (0, "")


@pytest.mark.parametrize("version", range(1, 10))
async def test_asking_in_each_version(stage: Stage, version: int) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    await code(client, commit(1, metadata="note"), max(version, 2))
    topics = [FetchOffsetsTopic(name="t", partition_indexes=[0, 7])]
    if version >= 8:
        groups = [FetchOffsetsGroup(group_id="g", topics=topics)]
        found = (await client.exchange(OffsetFetchRequest(groups=groups), version)).groups[0].topics
    else:
        requested = OffsetFetchRequest(group_id="g", topics=topics)
        found = (await client.exchange(requested, version)).topics
    results = [
        (part.committed_offset, part.metadata, part.error_code) for part in found[0].partitions
    ]
    assert results == [(1, "note", 0), (-1, "", 0)]


# -- subscriptions of Pulsar's -------------------------------------------------------------------


async def test_a_subscription_of_pulsars_is_a_group(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"))
    await (await stage.broker.topic(loaded(stage).name)).subscription("theirs", start=START)
    assert await committed(client, "theirs") == (0, "")
    cursor = loaded(stage).subscriptions["theirs"].cursor
    first = loaded(stage).ledger.chain.first
    cursor.ack_to(first)
    assert await committed(client, "theirs") == (2, "")
    cursor.ack_to((first[0], first[1] + 1))
    assert await committed(client, "theirs") == (3, ""), "the end"


async def test_what_pulsar_acknowledges_outdates_a_commit(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"), batch(b"d"))
    await client.exchange(commit(1, metadata="in a batch"), 9)
    assert await committed(client) == (1, "in a batch")
    cursor = loaded(stage).subscriptions["g"].cursor
    ledger_id, entry_id = loaded(stage).ledger.chain.first
    cursor.ack_range(ledger_id, entry_id + 1, entry_id + 1)
    assert await committed(client) == (0, ""), "the first entry is the one to go on with"
    cursor.ack_range(ledger_id, entry_id, entry_id)
    assert await committed(client) == (3, "")


async def test_no_commit_while_a_consumer_of_pulsars_is_attached(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"))
    theirs = await attached(loaded(stage), SubscriptionType.SHARED, subscription="g")
    subscription = loaded(stage).subscriptions["g"]
    assert await code(client, commit(1)) == errors.NON_EMPTY_GROUP
    assert subscription.cursor.backlog == 1
    loaded(stage).detach(theirs.consumer)
    assert await code(client, commit(1)) == 0
    assert subscription.cursor.backlog == 0


async def test_a_consumer_of_pulsars_goes_on_where_a_group_was(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"), batch(b"c"))
    for kind in (SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE):
        before = await attached(loaded(stage), kind, subscription="g")
        stage.broker.dispatch()
        loaded(stage).detach(before.consumer)
        assert await code(client, commit(2)) == 0
        theirs = await attached(loaded(stage), kind, subscription="g")
        stage.broker.dispatch()
        await settled()
        stage.broker.dispatch()
        assert len(theirs.got) == 1
        loaded(stage).detach(theirs.consumer)
