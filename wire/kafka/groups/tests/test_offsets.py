"""Offsets as cursors: whose a subscription is, and what stays when an offset is forgotten."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Fenced, NotReady, StorageFailed, StorageFull, TopicNotFound
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.tests.test_held import Holder
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage, stage
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.group_records import GroupRecord
from magnetar.wire.kafka.groups.offsets import (
    OWN,
    Offsets,
    commit_code,
    committed_offset,
    committed_to,
)
from magnetar.wire.kafka.groups.task_order import TaskOrder
from magnetar.wire.kafka.tests.batch import batch

__all__ = ["stage"]

T = ("t", 0)


async def topic_of(stage: Stage) -> PersistentTopic:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"), batch(b"c"))
    return (await stage.front.services.logs.get(*T)).topic


async def commit(stage: Stage, commit: CommittedPosition) -> int:
    turn = TaskOrder().take("here")
    return (await stage.front.services.offsets.commit("g", {T: commit}, turn, GroupRecord()))[T]


async def test_its_own_subscription_comes_and_goes(stage: Stage) -> None:
    topic, offsets = await topic_of(stage), stage.front.services.offsets
    assert await offsets.fetch("g", T) is None
    assert await commit(stage, CommittedPosition(1, 0, "note", 5)) == errors.NONE
    assert await offsets.fetch("g", T) == CommittedPosition(1, 0, "note", 5)
    assert OWN in topic.subscriptions["g"].cursor.properties
    assert not offsets.is_committing("g")
    assert await offsets.forget("g", T) == errors.NONE
    assert "g" not in topic.subscriptions
    assert await offsets.forget("g", T) == errors.NONE
    assert await offsets.forget("g", ("none", 0)) == errors.NONE


async def test_a_held_subscription_is_read_and_never_moved(stage: Stage) -> None:
    """Only its holder knows what it keeps (`core/topic/subscription/held.py`)."""
    topic, offsets = await topic_of(stage), stage.front.services.offsets
    topic.env.held.add(Holder("g", 1))
    assert await commit(stage, CommittedPosition(1)) == errors.INVALID_GROUP_ID
    assert not topic.subscriptions, "nor is it created"
    await topic.hold("g")
    assert await commit(stage, CommittedPosition(1)) == errors.INVALID_GROUP_ID
    assert await offsets.fetch("g", T) == CommittedPosition(3)
    assert await offsets.forget("g", T) == errors.NONE
    assert "g" in topic.subscriptions


async def test_a_subscription_of_pulsars_stays(stage: Stage) -> None:
    topic, offsets = await topic_of(stage), stage.front.services.offsets
    await topic.subscription("g", start=(-1, -1))
    assert await offsets.fetch("g", T) == CommittedPosition(0)
    assert await commit(stage, CommittedPosition(2)) == errors.NONE
    assert await offsets.forget("g", T) == errors.NONE
    assert await offsets.fetch("g", T) == CommittedPosition(2)
    assert OWN not in topic.subscriptions["g"].cursor.properties
    assert topic.subscriptions["g"].cursor.position_properties == {}


async def test_who_moves_the_cursor_ends_what_was_committed_to_it(stage: Stage) -> None:
    topic = await topic_of(stage)
    assert await commit(stage, CommittedPosition(2)) == errors.NONE
    cursor = topic.subscriptions["g"].cursor
    topic.subscriptions["g"].skip(1)
    assert committed_to(cursor) is None


async def test_a_group_counts_wherever_its_cursor_was_moved(stage: Stage) -> None:
    """By expiry, retention or an operator: it is then that its lag is looked at."""
    topic = await topic_of(stage)
    await topic.subscription("of-pulsar", start=(-1, -1))

    def at(name: str) -> int | None:
        return committed_offset(topic.ledger, topic.subscriptions[name].cursor)

    assert await commit(stage, CommittedPosition(0)) == errors.NONE
    client = await stage.client("t")
    await client.produce("t", batch(b"d"), batch(b"e"))
    assert (at("g"), at("of-pulsar")) == (0, None)
    for name in ("g", "of-pulsar"):
        topic.subscriptions[name].skip(3)
    assert (at("g"), at("of-pulsar")) == (4, None)
    stage.broker.tail_cache.bytes_max = 0
    stage.broker.tail_cache.evict()
    assert at("g") == 0, "as far as is known without reading"
    topic.subscriptions["g"].skip(1)
    assert at("g") == 5
    assert await commit(stage, CommittedPosition(-1)) == errors.NONE
    assert at("g") is None


async def test_readers_in_memory_are_no_groups(stage: Stage) -> None:
    topic = await topic_of(stage)
    topic.reader("g", (-1, -1))
    assert await stage.front.services.offsets.fetch("g", T) is None
    assert await commit(stage, CommittedPosition(1)) == errors.NON_EMPTY_GROUP


async def test_offsets_beyond_both_ends(stage: Stage) -> None:
    topic = await topic_of(stage)
    for offset, backlog in ((100, 0), (0, 2), (2, 1), (1, 2), (3, 0)):
        assert await commit(stage, CommittedPosition(offset)) == errors.NONE
        assert topic.subscriptions["g"].cursor.backlog == backlog
        assert await stage.front.services.offsets.fetch("g", T) == CommittedPosition(offset)


async def test_what_was_stored_is_there_after_a_restart(stage: Stage) -> None:
    topic = await topic_of(stage)
    await commit(stage, CommittedPosition(1, 0, "note", 5, 6))
    await stage.broker.unload(topic.name)
    again = Stage(stage.stores, stage.broker)
    found = await Offsets(
        again.broker, again.front.services.logs, again.front.services.group_records
    ).fetch("g", T)
    assert found == CommittedPosition(1, 0, "note", 5, 6)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotReady(""), errors.COORDINATOR_LOAD_IN_PROGRESS),
        (Fenced(""), errors.COORDINATOR_LOAD_IN_PROGRESS),
        (StorageFailed(""), errors.COORDINATOR_NOT_AVAILABLE),
        (StorageFull(""), errors.COORDINATOR_NOT_AVAILABLE),
        (TopicNotFound(""), errors.UNKNOWN_TOPIC),
    ],
)
def test_codes(error: Exception, code: int) -> None:
    assert commit_code(error) == code
