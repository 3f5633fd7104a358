"""Offsets age, and are forgotten with their groups."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.expiry import Expiry, expires_ms
from magnetar.wire.kafka.groups.group_records import GroupRecord
from magnetar.wire.kafka.groups.options import GroupOptions
from magnetar.wire.kafka.messages.groups import LeaveGroupRequest, LeaveMember
from magnetar.wire.kafka.messages.offsets import OffsetCommitRequest
from magnetar.wire.kafka.session.groups.tests.test_classic import commit, committed, member

MINUTE = 60.0


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores) as broker:
        yield Stage(stores, broker, groups=GroupOptions(retention_ms=10 * 60_000))


async def leave(client: Client, joined: object) -> None:
    members = [LeaveMember(member_id=joined.member_id)]
    await client.exchange(LeaveGroupRequest(group_id="g", members=members))


async def go_on(stage: Stage, expiry: Expiry, minutes: float) -> None:
    await stage.front.services.groups.tick()
    stage.stores.clock.forward(minutes * MINUTE)
    await stage.front.services.groups.tick()
    await expiry.expire_all()


@pytest.mark.parametrize(
    ("commit", "record", "when_ms"),
    [
        (CommittedPosition(1, committed_ms=100), GroupRecord(), 150),
        (CommittedPosition(1, committed_ms=100), GroupRecord(empty_since_ms=200), 250),
        (CommittedPosition(1, committed_ms=300), GroupRecord(empty_since_ms=200), 350),
        (
            CommittedPosition(1, committed_ms=300, expires_ms=301),
            GroupRecord(empty_since_ms=400),
            301,
        ),
    ],
)
def test_when(commit: CommittedPosition, record: GroupRecord, when_ms: int) -> None:
    assert expires_ms(commit, record, 50) == when_ms


async def test_of_somebody_who_only_commits(stage: Stage) -> None:
    client, expiry = await stage.client("t"), stage.front.services.expiry
    await client.exchange(commit(0), 9)
    await go_on(stage, expiry, 9)
    await client.exchange(commit(0), 9)
    await go_on(stage, expiry, 9)
    assert await committed(client) == (0, "")
    await go_on(stage, expiry, 1)
    assert await committed(client) == (-1, "")
    assert await stage.front.services.group_records.names() == []
    (topic,) = stage.broker.topics.values()
    assert not topic.subscriptions


async def test_of_a_group_from_when_the_last_one_leaves(stage: Stage) -> None:
    client, expiry = await stage.client("t"), stage.front.services.expiry
    joined = await member(client)
    await client.exchange(commit(0, joined), 9)
    for _ in range(100):
        await go_on(stage, expiry, 0.15)
        stage.front.services.groups.find("g").heartbeat(
            joined.member_id, 1, None, stage.front.services.groups.now()
        )
    assert await committed(client) == (0, ""), "somebody is in"
    await leave(client, joined)
    await go_on(stage, expiry, 9)
    assert await committed(client) == (0, "")
    await go_on(stage, expiry, 1)
    assert await committed(client) == (-1, "")


async def test_of_a_group_whose_members_do_not_come_back_after_a_restart(stage: Stage) -> None:
    client = await stage.client("t")
    joined = await member(client)
    await client.exchange(commit(0, joined), 9)
    again = Stage(stage.stores, stage.broker, groups=stage.front.options.groups)
    await again.front.open()
    client, expiry = await again.client(), again.front.services.expiry
    await go_on(again, expiry, 100)
    assert await committed(client) == (0, ""), "its time begins now"
    await go_on(again, expiry, 10)
    assert await committed(client) == (-1, "")


async def test_as_long_as_a_client_of_old_says(stage: Stage) -> None:
    client, expiry = await stage.client("t"), stage.front.services.expiry
    joined = await member(client)
    request = commit(0, joined)
    await client.exchange(
        OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=joined.generation_id,
            member_id=joined.member_id,
            retention_time_ms=60_000,
            topics=request.topics,
        ),
        2,
    )
    await leave(client, joined)
    await go_on(stage, expiry, 0.5)
    assert await committed(client) == (0, "")
    await go_on(stage, expiry, 0.6)
    assert await committed(client) == (-1, "")


async def test_what_no_member_wants(stage: Stage) -> None:
    client, expiry = await stage.client("t"), stage.front.services.expiry
    await client.exchange(commit(0), 9)
    stage.stores.clock.forward(11 * MINUTE)
    joined = await member(client)
    await expiry.expire_all()
    assert await committed(client) == (0, ""), "it is wanted"
    await leave(client, joined)
    other = b"\0\0" + b"\0\0\0\1\0\5other" + b"\0\0\0\0"
    await member(client, other)
    await expiry.expire_all()
    assert await committed(client) == (-1, "")


async def test_subscriptions_of_pulsars_do_not_age(stage: Stage) -> None:
    client, expiry = await stage.client("t"), stage.front.services.expiry
    (topic,) = [await stage.front.services.logs.get("t", 0)]
    await topic.topic.subscription("theirs")
    await go_on(stage, expiry, 10_000)
    assert await committed(client, "theirs") == (0, "")
