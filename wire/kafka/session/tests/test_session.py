"""In which order the requests of one connection begin, and how many at once."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.testing.bench import settled
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request, produce_request
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from magnetar.wire.kafka.session import session
from magnetar.wire.kafka.session.context import RequestContext
from magnetar.wire.kafka.session.produce import produce
from magnetar.wire.kafka.session.session import WAITING_MAX
from magnetar.wire.kafka.tests.batch import batch

BEGINNING, END = -2, -1


def ask_offset(client: Client, which: int) -> None:
    part = ListOffsetsPartition(partition_index=0, timestamp=which)
    topics = [ListOffsetsTopic(name="t", partitions=[part])]
    client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7)


def ask_to_cut(client: Client, offset: int) -> None:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsTopic(name="t", partitions=[part])]
    client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000))


async def test_a_request_sees_what_those_before_it_did(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a"), batch(b"b"), batch(b"c"))
    ask_to_cut(client, 2)
    ask_offset(client, BEGINNING)
    await settled()
    cut, listed = client.receive()
    assert cut.topics[0].partitions[0].low_watermark == 2
    assert listed.topics[0].partitions[0].offset == 2


async def test_produces_wait_for_no_produces_but_others_do(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    for value in (b"a", b"b"):
        client.ask(produce_request("t", batch(value)), 9)
    ask_offset(client, END)
    client.ask(produce_request("t", batch(b"c")), 9)
    await settled()
    assert client.receive() == []
    slow_stage.stores.ledgers.sync()
    await settled()
    first, second, listed = client.receive()
    assert first.responses[0].partition_responses[0].base_offset == 0
    assert second.responses[0].partition_responses[0].base_offset == 1
    assert listed.topics[0].partitions[0].offset == 2
    slow_stage.stores.ledgers.sync()
    await settled()
    (third,) = client.receive()
    assert third.responses[0].partition_responses[0].base_offset == 2


async def test_thousands_at_once_take_one_task_and_end_the_reading(stage: Stage) -> None:
    client = await stage.client("t")
    await settled()
    before = trio.lowlevel.current_statistics().tasks_living
    for _ in range(20 * WAITING_MAX):
        client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    assert trio.lowlevel.current_statistics().tasks_living == before + 1
    assert client.line.paused
    other = await stage.client()
    await other.produce("t", batch(b"a"))
    await settled()
    assert len(client.receive()) == 20 * WAITING_MAX
    assert not client.line.paused


async def test_a_thousand_that_are_refused_at_once_are_answered(stage: Stage) -> None:
    client = await stage.client("t")
    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    for _ in range(2000):
        client.ask(produce_request("t", b"no batch"), 9)
    other = await stage.client()
    await other.produce("t", batch(b"a"))
    await settled()
    assert len(client.receive()) == 2001


async def test_a_mistake_of_ours_in_one_that_waited_ends_the_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await stage.client("t"), await stage.client()

    made = session.RequestContext

    def fail(key: int, *more: Any) -> RequestContext:
        assert key != ListOffsetsRequest.KEY, "a mistake of ours"
        return made(key, *more)

    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    ask_offset(client, END)
    ask_offset(client, END)
    monkeypatch.setattr(session, "RequestContext", fail)
    await other.produce("t", batch(b"a"))
    assert client.line.ending == "this server failed"
    assert len(client.receive()) == 1
    assert (await other.fetch("t", 0)).high_watermark == 1


async def test_a_mistake_of_ours_while_a_topic_is_loaded_ends_the_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await stage.client("t"), await stage.client("other")
    with monkeypatch.context() as patch:
        patch.setattr(produce.Producing, "prepare", None)
        client.ask(produce_request("t", batch(b"a")), 9)
        client.ask(produce_request("t", batch(b"b")), 9)
        await settled()
    assert client.line.ending == "this server failed"
    assert client.receive() == []
    assert (await other.produce("other", batch(b"a"))).base_offset == 0


async def test_what_waits_for_its_turn_goes_with_the_connection(stage: Stage) -> None:
    client, other = await stage.client("t"), await stage.client()
    client.ask(fetch_request("t", 0, wait_ms=60_000, min_bytes=1), 12)
    client.ask(produce_request("t", batch(b"a")), 9)
    client.session.closed("gone")
    await settled()
    assert (await other.fetch("t", 0)).high_watermark == 0


async def test_produces_behind_a_fetch_do_not_count_as_on_their_way_to_storage(
    stage: Stage,
) -> None:
    """The fetch may wait for ever, and with it all who write would wait."""
    client = await stage.client("t")
    client.ask(fetch_request("t", 0, wait_ms=2**31 - 1, min_bytes=1), 12)
    await settled()
    for _ in range(3):
        client.ask(produce_request("t", batch(bytes(100_000))), 9)
    assert client.line.storing_bytes == 0
    assert not client.line.paused
    client.session.closed("gone")


async def test_produces_behind_one_that_loads_its_topic_do(stage: Stage) -> None:
    client = Client(stage.front)
    await (await stage.client("t")).exchange(
        MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9
    )
    for _ in range(3):
        client.ask(produce_request("t", batch(bytes(100_000))), 9)
    assert client.line.storing_bytes > 300_000
    await settled()
    assert len(client.receive()) == 3
    assert client.line.storing_bytes == 0
