"""Offsets that come with a transaction, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.bench import settled
from magnetar.core.testing.client import attached
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.groups.commit import CommittedPosition
from magnetar.wire.kafka.groups.offsets import Offsets
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.messages.offsets import FetchOffsetsTopic, OffsetFetchRequest
from magnetar.wire.kafka.messages.transactions import (
    AddOffsetsToTxnRequest,
    TxnCommitPartition,
    TxnCommitTopic,
    TxnOffsetCommitRequest,
)
from magnetar.wire.kafka.session.groups.tests.test_consumer import Reader
from magnetar.wire.kafka.session.groups.tests.test_offsets import loaded
from magnetar.wire.kafka.session.transactions.tests.test_transactions import Producer
from magnetar.wire.kafka.tests.batch import batch


async def began(stage: Stage) -> Producer:
    """A producer in whose transaction is the group `g`."""
    made = Producer(await stage.client("t"))
    await made.client.produce("t", batch(*[b"x"] * 9))
    assert await made.init() == 0
    request = AddOffsetsToTxnRequest(
        transactional_id="n", producer_id=made.id, producer_epoch=made.epoch, group_id="g"
    )
    assert (await made.client.exchange(request)).error_code == 0
    return made


async def promised(one: Producer, offset: int, **fields: Any) -> int:
    part = TxnCommitPartition(
        partition_index=0, committed_offset=offset, committed_metadata=fields.pop("note", None)
    )
    said: dict[str, Any] = {
        "transactional_id": "n",
        "group_id": "g",
        "producer_id": one.id,
        "producer_epoch": one.epoch,
        "topics": [TxnCommitTopic(name="t", partitions=[part])],
        **fields,
    }
    results = await one.client.exchange(TxnOffsetCommitRequest(**said), 3)
    code: int = results.topics[0].partitions[0].error_code
    return code


def fetch_of(*, stable: bool) -> OffsetFetchRequest:
    topics = [FetchOffsetsTopic(name="t", partition_indexes=[0])]
    return OffsetFetchRequest(group_id="g", topics=topics, require_stable=stable)


async def committed(client: Client, *, stable: bool = False) -> tuple[int, int]:
    part = (await client.exchange(fetch_of(stable=stable), 7)).topics[0].partitions[0]
    return part.error_code, part.committed_offset


@pytest.mark.parametrize(("commit", "offset"), [(True, 5), (False, -1)])
async def test_they_are_there_when_it_is_committed(stage: Stage, commit: bool, offset: int) -> None:
    one = await began(stage)
    assert await promised(one, 5) == 0
    assert await committed(one.client) == (0, -1)
    assert await committed(one.client, stable=True) == (errors.UNSTABLE_OFFSET_COMMIT, -1)
    assert await one.end(commit=commit) == 0
    assert await committed(one.client, stable=True) == (0, offset)


@pytest.mark.parametrize("promise", ["before", "meanwhile"])
async def test_what_is_read_while_the_transaction_ends_is_not_stable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, promise: str
) -> None:
    """The offset is read before the transaction changes it, and the reply is made behind."""
    one, reader = await began(stage), await stage.client("t")
    if promise == "before":
        await promised(one, 5)
    fetch, ended = Offsets.fetch, trio.Event()

    async def slow(offsets: Offsets, group: str, where: TopicPartition) -> CommittedPosition | None:
        found = await fetch(offsets, group, where)
        await ended.wait()
        return found

    monkeypatch.setattr(Offsets, "fetch", slow)
    reader.ask(fetch_of(stable=True), 7)
    await settled()
    if promise == "meanwhile":
        await promised(one, 5)
    assert await one.end(commit=True) == 0
    ended.set()
    await settled()
    (reply,) = reader.receive()
    part = reply.topics[0].partitions[0]
    assert (part.error_code, part.committed_offset) == (errors.UNSTABLE_OFFSET_COMMIT, -1)
    assert await committed(reader, stable=True) == (0, 5)


async def test_the_last_promise_counts(stage: Stage) -> None:
    one = await began(stage)
    await promised(one, 5)
    await promised(one, 3)
    await one.end(commit=True)
    assert await committed(one.client) == (0, 3)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": "other"}, errors.INVALID_TXN_STATE),
        ({"producer_epoch": 9}, errors.INVALID_PRODUCER_EPOCH),
        ({"producer_id": 9999}, errors.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "x"}, errors.INVALID_PRODUCER_ID_MAPPING),
        ({"member_id": "m", "generation_id": 1}, errors.UNKNOWN_MEMBER_ID),
        ({"note": "x" * 5000}, errors.OFFSET_METADATA_TOO_LARGE),
    ],
)
async def test_txn_offset_commit_that_may_not_be(
    stage: Stage, fields: dict[str, Any], code: int
) -> None:
    one = await began(stage)
    assert await promised(one, 5, **fields) == code
    await one.end(commit=True)
    assert await committed(one.client) == (0, -1)


async def test_where_nobody_is_in_anybody_may_promise(stage: Stage) -> None:
    one = await began(stage)
    assert await promised(one, 5, member_id="an id of its own") == 0
    await one.end(commit=True)
    assert await committed(one.client) == (0, 5)


async def test_members_of_the_newer_protocol(stage: Stage) -> None:
    one = await began(stage)
    reader = Reader(await stage.client(), "m")
    await reader.join("t")
    said = {"member_id": "m", "generation_id": reader.epoch}
    assert await promised(one, 5, **{**said, "member_id": "x"}) == errors.UNKNOWN_MEMBER_ID
    late = {**said, "generation_id": reader.epoch + 1}
    assert await promised(one, 5, **late) == errors.ILLEGAL_GENERATION
    assert await promised(one, 5, **said) == 0
    await one.end(commit=True)
    assert await committed(one.client) == (0, 5)


async def test_what_cannot_be_stored_is_not_promised(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await began(stage)

    async def failing(*_args: object) -> int:
        raise StorageFailed("no")

    with monkeypatch.context() as patch:
        patch.setattr(stage.stores.metadata, "put", failing)
        assert await promised(one, 5) == errors.COORDINATOR_NOT_AVAILABLE
    await one.end(commit=True)
    await settled()
    assert await committed(one.client) == (0, -1)


async def test_while_pulsars_consumers_are_attached_no_offset_is_accepted(stage: Stage) -> None:
    one = await began(stage)
    await attached(loaded(stage), SubscriptionType.SHARED, subscription="g")
    assert await promised(one, 5) == errors.UNKNOWN_MEMBER_ID
