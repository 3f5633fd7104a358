"""Two brokers on one metadata store and one ledger store, each of which thinks that it owns all.

What Kafka's clients hear of it: whoever is replaced answers NOT_COORDINATOR or
NOT_LEADER_OR_FOLLOWER, which makes clients look again, and nothing that the other one has answered
is lost. `core/cluster/tests/test_two_brokers.py` has what is not Kafka's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.kafka.groups.classic.store import MEMBERS
from magnetar.wire.kafka.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from magnetar.wire.kafka.messages.groups import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    SyncAssignment,
    SyncGroupRequest,
)
from magnetar.wire.kafka.messages.offsets import (
    DeleteOffsetsPartition,
    DeleteOffsetsTopic,
    OffsetDeleteRequest,
)
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.session.groups.tests.test_classic import commit, committed, join, member
from magnetar.wire.kafka.session.groups.tests.test_offsets import code
from magnetar.wire.kafka.session.transactions.tests.test_transactions import Producer, values
from magnetar.wire.kafka.session.transactions.tests.test_transactions import (
    committed as read_committed,
)
from magnetar.wire.kafka.tests.batch import batch

Stages = tuple[Stage, Stage]


@pytest.fixture
def stores() -> Stores:
    return Stores()


@pytest.fixture
async def stages(stores: Stores) -> AsyncIterator[Stages]:
    async with running(stores) as one, running(stores) as other:
        yield Stage(stores, one), Stage(stores, other)


def heartbeat(member_id: str, generation: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)


async def test_a_partition_is_written_by_one(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    assert (await one.produce("t", batch(b"before"))).base_offset == 0
    assert (await other.produce("t", batch(b"after"))).base_offset == 1
    assert (await one.produce("t", batch(b"too late"))).error_code == errors.NOT_LEADER
    assert (await other.produce("t", batch(b"goes on"))).base_offset == 2
    assert (await one.produce("t", batch(b"takes it back"))).base_offset == 3
    found = values(await one.fetch("t", 0))
    assert found == list(enumerate([b"before", b"after", b"goes on", b"takes it back"]))


async def test_a_producer_is_known_to_the_next_owner(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    sent = [batch(b"%d" % number, producer=(7, 0, number)) for number in range(4)]
    assert (await one.produce("t", *sent[:2])).base_offset == 1
    again = await other.produce("t", sent[1])
    assert (again.error_code, again.base_offset) == (0, 1), "it is there already"
    assert (await other.produce("t", sent[2])).base_offset == 2
    for stage in stages:  # who has lost it stores nothing over what the owner stores
        await stage.broker.stop()
    await settled()
    async with running(stages[0].stores) as broker:
        last = await Stage(stages[0].stores, broker).client("t")
        assert (await last.produce("t", sent[2])).base_offset == 2
        assert (await last.produce("t", sent[3])).base_offset == 3


async def test_offsets_are_stored_by_one(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    for value in (b"a", b"b", b"c"):
        await one.produce("t", batch(value))
    assert (await one.exchange(commit(1), 9)).topics[0].partitions[0].error_code == 0
    assert await committed(other) == (1, "")
    assert (await other.exchange(commit(3), 9)).topics[0].partitions[0].error_code == 0
    code = (await one.exchange(commit(2), 9)).topics[0].partitions[0].error_code
    assert code == errors.COORDINATOR_LOAD_IN_PROGRESS, "clients try it again"
    assert await committed(other) == (3, "")
    assert (await one.produce("t", batch(b"x"))).base_offset == 3, "loaded anew, and taken back"
    assert await committed(one) == (3, "")
    assert (await other.produce("t", batch(b"y"))).error_code == errors.NOT_LEADER


async def test_a_group_goes_on_with_its_new_coordinator(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    joined = await member(one)
    beat = heartbeat(joined.member_id, joined.generation_id)
    assert (await other.exchange(beat)).error_code == 0, "its member is known by what is stored"
    rejoined = await other.exchange(join(joined.member_id))
    assert (rejoined.error_code, rejoined.generation_id) == (0, joined.generation_id + 1)
    task = SyncAssignment(member_id=joined.member_id, assignment=b"all, again")
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=rejoined.generation_id,
        member_id=joined.member_id,
        assignments=[task],
    )
    assert (await other.exchange(sync)).assignment == b"all, again"
    # the former coordinator leads a member on until it has something to store
    stale = await one.exchange(join(joined.member_id))
    assert stale.error_code == 0
    late = SyncGroupRequest(
        group_id="g",
        generation_id=stale.generation_id,
        member_id=joined.member_id,
        assignments=[SyncAssignment(member_id=joined.member_id, assignment=b"stale")],
    )
    assert (await one.exchange(late)).error_code == errors.NOT_COORDINATOR
    assert one.front.services.groups.all() == []
    beat = heartbeat(joined.member_id, rejoined.generation_id)
    assert (await other.exchange(beat)).error_code == 0
    assert (await one.exchange(beat)).error_code == 0, "loaded anew, as the other one stored it"


async def test_a_group_of_the_newer_protocol_has_one_coordinator(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    enter = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    first = await one.exchange(enter)
    assert (first.error_code, first.member_epoch) == (0, 1)
    enter.member_id = "n"
    second = await other.exchange(enter)
    assert (second.error_code, second.member_epoch) == (0, 2)
    enter.member_id = "late"
    assert (await one.exchange(enter)).error_code == errors.NOT_COORDINATOR
    group = other.front.services.groups.consumer("g")
    assert group is not None
    assert set(group.members) == {"m", "n"}


async def test_the_record_of_a_group_has_one_writer(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    await one.produce("t", batch(b"a"))
    joined = await member(one)
    await one.exchange(commit(1, joined), 9)
    await one.front.services.groups.tick()
    await other.front.services.group_records.note("g", "classic", "consumer", 5)
    group = one.front.services.groups.find("g")
    assert group is not None
    group.leave(joined.member_id, None, one.front.services.groups.now())
    await one.front.services.groups.tick()
    assert one.front.services.groups.all() == [], "another one has it"
    found = await one.front.services.group_records.find("g")
    assert found is not None
    assert found.empty_since_ms == 5


async def test_a_replaced_coordinator_deletes_no_group(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    for value in (b"a", b"b"):
        await one.produce("t", batch(value))
    assert await code(one, commit(1)) == 0
    assert await code(other, commit(2)) == 0
    delete = DeleteGroupsRequest(groups_names=["g"])
    assert (await one.exchange(delete, 2)).results[0].error_code == errors.NOT_COORDINATOR
    assert await committed(other) == (2, "")
    assert (await other.exchange(delete, 2)).results[0].error_code == 0
    assert await committed(other) == (-1, "")


async def test_a_replaced_coordinator_deletes_no_offset(stages: Stages) -> None:
    one, other = [await stage.client("t") for stage in stages]
    for value in (b"a", b"b"):
        await one.produce("t", batch(value))
    assert await code(one, commit(1)) == 0
    assert await code(other, commit(2)) == 0
    topic = DeleteOffsetsTopic(name="t", partitions=[DeleteOffsetsPartition(partition_index=0)])
    deleted = await one.exchange(OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    assert deleted.topics[0].partitions[0].error_code == errors.NOT_COORDINATOR
    assert await committed(other) == (2, "")


async def test_a_replaced_coordinator_expires_nothing(
    stages: Stages, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the topic as it was, too: there the offset is old enough."""
    one, other = [await stage.client("t") for stage in stages]
    for value in (b"a", b"b"):
        await one.produce("t", batch(value))
    retention_seconds = one.front.options.groups.retention_ms / 1000
    assert await code(one, commit(1)) == 0
    stages[0].stores.clock.forward(retention_seconds - 60)
    assert await code(other, commit(2)) == 0
    stages[0].stores.clock.forward(120)
    await one.front.services.expiry.expire_all()
    assert "expired offsets stay for now" in caplog.text
    await other.front.services.expiry.expire_all()
    assert await committed(other) == (2, "")


async def test_groups_are_listed_by_their_coordinator(stores: Stores) -> None:
    peer = Peer(1)
    table = OwnershipTable(peer)
    async with running(stores, table) as broker:
        client = await Stage(stores, broker).client("t")
        await client.produce("t", batch(b"a"))
        for group in ("ours", "theirs"):
            assert await code(client, replace(commit(1), group_id=group)) == 0
        table.groups["theirs"] = peer
        listed = await client.exchange(ListGroupsRequest(), 4)
        assert [group.group_id for group in listed.groups] == ["ours"]


async def test_a_transaction_has_one_coordinator(stages: Stages) -> None:
    one, other = [Producer(await stage.client("t")) for stage in stages]
    assert await one.init() == 0
    assert await other.init() == 0
    assert other.epoch == one.epoch + 1
    assert await one.add() == errors.NOT_COORDINATOR
    assert await one.add() == errors.PRODUCER_FENCED, "loaded anew, as the other one stored it"
    assert await other.add() == 0
    assert await other.write(b"a") == 0
    assert await other.end(commit=True) == 0
    assert values(await read_committed(other.client)) == [(0, b"a")]


async def test_a_start_loads_no_group_of_a_peer(stores: Stores) -> None:
    peer = Peer(1)
    table = OwnershipTable(peer)
    table.groups["g"] = table.transactions["n"] = peer
    async with running(stores) as owner:
        client = await Stage(stores, owner).client("t")
        joined = await member(client)
        producer = Producer(client)
        assert await producer.init() == 0
        await client.front.open()
        before = dict(stores.metadata._values)
        assert any(path.startswith(MEMBERS) for path in before)
        async with running(stores, table) as other:
            front = KafkaFront(other, KafkaOptions())
            await front.open()
            await settled()
            assert (front.services.groups.all(), list(front.services.transactions.all())) == (
                [],
                [],
            )
        assert stores.metadata._values == before
        beat = heartbeat(joined.member_id, joined.generation_id)
        assert (await client.exchange(beat)).error_code == 0
