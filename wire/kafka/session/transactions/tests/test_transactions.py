"""Transactions as producers, consumers and tools see them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.entry.kafka import record_batch
from magnetar.core.ledger.read.transaction_index import ALL_ABORTED_MAX
from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request
from magnetar.wire.kafka.messages.records import (
    FetchedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from magnetar.wire.kafka.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from magnetar.wire.kafka.tests.batch import batch

TRANSACTIONAL = record_batch.TRANSACTIONAL


class Producer:
    """A transactional producer by hand."""

    def __init__(self, client: Client, name: str | None = "n") -> None:
        self.client = client
        self.name = name
        self.id = self.epoch = -1
        self.sequence = 0

    async def init(self, timeout_ms: int = 1000, version: int = 5, **known: Any) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms, **known
        )
        results = await self.client.exchange(request, version)
        if results.error_code == 0:
            self.id, self.epoch, self.sequence = results.producer_id, results.producer_epoch, 0
        code: int = results.error_code
        return code

    async def add(self, topic: str = "t", partition: int = 0) -> int:
        request = AddPartitionsToTxnRequest(
            transactional_id=self.name or "",
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[AddTopic(name=topic, partitions=[partition])],
        )
        results = await self.client.exchange(request)
        code: int = results.results_by_topic[0].results_by_partition[0].partition_error_code
        return code

    async def write(self, *values: bytes, topic: str = "t", attributes: int = TRANSACTIONAL) -> int:
        made = batch(*values, producer=(self.id, self.epoch, self.sequence), attributes=attributes)
        results = await self.client.produce(topic, made)
        if results.error_code == 0:
            self.sequence += len(values)
        return results.error_code

    async def end(self, *, commit: bool) -> int:
        request = EndTxnRequest(
            transactional_id=self.name or "",
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        code: int = (await self.client.exchange(request, 4)).error_code
        await settled()
        return code


async def producer(stage: Stage, name: str = "n") -> Producer:
    made = Producer(await stage.client("t"), name)
    assert await made.init() == 0
    return made


async def committed(client: Client, offset: int = 0) -> FetchedPartition:
    request = fetch_request("t", offset)
    request.isolation_level = 1
    found: FetchedPartition = (await client.exchange(request, 12)).responses[0].partitions[0]
    return found


def values(part: FetchedPartition) -> list[tuple[int, bytes | None]]:
    data, found = part.records or b"", []
    while data:
        header = record_batch.header_of(data)
        found += [
            (header.base_offset + record.place, record.value)
            for record in record_batch.records_of(data[: header.size + 12])
            if not header.attributes & record_batch.CONTROL
        ]
        data = data[header.size + 12 :]
    return found


async def test_nobody_reads_what_is_not_decided(stage: Stage) -> None:
    one = await producer(stage)
    assert await one.add() == 0
    assert await one.write(b"a", b"b") == 0
    await one.client.produce("t", batch(b"plain"))
    part = await committed(one.client)
    assert (values(part), part.high_watermark, part.last_stable_offset) == ([], 3, 0)
    assert values(await one.client.fetch("t", 0)) == [(0, b"a"), (1, b"b"), (2, b"plain")]
    assert await one.end(commit=True) == 0
    part = await committed(one.client)
    assert values(part) == [(0, b"a"), (1, b"b"), (2, b"plain")]
    assert (part.high_watermark, part.last_stable_offset, part.aborted_transactions) == (4, 4, [])


async def test_what_came_to_nothing_is_named(stage: Stage) -> None:
    one = await producer(stage)
    await one.add()
    await one.write(b"a")
    await one.end(commit=False)
    part = await committed(one.client)
    assert part.aborted_transactions is not None
    assert [(gone.producer_id, gone.first_offset) for gone in part.aborted_transactions] == [
        (one.id, 0)
    ]
    assert (await committed(one.client, 2)).aborted_transactions == []
    assert (await one.client.fetch("t", 0)).aborted_transactions is None


async def test_a_topic_with_too_many_aborted_ones_takes_no_more(stage: Stage) -> None:
    one = await producer(stage)
    stage.broker.env.aborted.count = ALL_ABORTED_MAX
    assert await one.add() == errors.POLICY_VIOLATION
    stage.broker.env.aborted.count = 0
    assert await one.add() == 0


async def test_a_reader_waits_for_the_decision(stage: Stage) -> None:
    one, reader = await producer(stage), await stage.client()
    await one.add()
    request = fetch_request("t", 0, wait_ms=60_000, min_bytes=1)
    request.isolation_level = 1
    reader.ask(request, 12)
    await one.write(b"a")
    assert reader.receive() == []
    await one.end(commit=True)
    (received,) = reader.receive()
    assert values(received.responses[0].partitions[0]) == [(0, b"a")]


async def test_who_takes_the_name_over_fences_and_aborts(stage: Stage) -> None:
    old, new = await producer(stage), Producer(await stage.client())
    await old.add()
    await old.write(b"a")
    assert await new.init() == 0
    assert (new.id, new.epoch) == (old.id, 2)
    assert await old.write(b"b") == errors.INVALID_PRODUCER_EPOCH
    assert await old.add() == errors.PRODUCER_FENCED
    assert await old.end(commit=True) == errors.PRODUCER_FENCED
    part = await committed(new.client)
    assert part.last_stable_offset == part.high_watermark == 2
    assert len(part.aborted_transactions or ()) == 1


async def test_numbers_run_out_after_many_epochs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("magnetar.wire.kafka.session.transactions.transactions.EPOCH_MAX", 2)
    one = await producer(stage)
    first = one.id
    for epoch in (1, 2):
        await one.init()
        assert (one.id, one.epoch) == (first, epoch)
    await one.init()
    assert one.id != first
    assert one.epoch == 0


async def test_a_producer_that_knows_its_number(stage: Stage) -> None:
    one = await producer(stage)
    known = {"producer_id": one.id, "producer_epoch": one.epoch}
    assert await one.init(**known) == 0
    assert one.epoch == 1
    assert await one.init(**known) == 0, "it has not heard the first time"
    assert one.epoch == 1
    await one.add()
    assert await one.init(**known) == errors.PRODUCER_FENCED
    assert await one.init(version=3, **known) == errors.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("name", "timeout_ms", "code"),
    [
        ("", 1000, errors.INVALID_REQUEST),
        ("n", 0, errors.INVALID_TRANSACTION_TIMEOUT),
        ("n", 900_001, errors.INVALID_TRANSACTION_TIMEOUT),
    ],
)
async def test_names_and_times_that_may_not_be(
    stage: Stage, name: str, timeout_ms: int, code: int
) -> None:
    one = Producer(await stage.client("t"), name)
    assert await one.init(timeout_ms) == code


async def test_nothing_is_written_outside_of_it(stage: Stage) -> None:
    one = await producer(stage)
    assert await one.write(b"a") == errors.INVALID_TXN_STATE
    await one.add()
    assert await one.write(b"a", attributes=0) == 0, "nothing is open here yet"
    assert await one.write(b"b") == 0
    assert await one.write(b"c", attributes=0) == errors.INVALID_TXN_STATE
    await one.end(commit=True)
    assert await one.write(b"d") == errors.INVALID_TXN_STATE


async def test_partitions_that_are_not_there(stage: Stage) -> None:
    one = await producer(stage)
    request = AddPartitionsToTxnRequest(
        transactional_id="n",
        producer_id=one.id,
        producer_epoch=one.epoch,
        topics=[AddTopic(name="t", partitions=[0, 9])],
    )
    (results,) = (await one.client.exchange(request)).results_by_topic
    assert [part.partition_error_code for part in results.results_by_partition] == [
        errors.OPERATION_NOT_ATTEMPTED,
        errors.UNKNOWN_TOPIC,
    ]
    assert await one.write(b"a") == errors.INVALID_TXN_STATE


async def test_strangers(stage: Stage) -> None:
    one, other = await producer(stage), Producer(await stage.client(), "unknown")
    other.id, other.epoch = one.id, 0
    assert await other.add() == errors.INVALID_PRODUCER_ID_MAPPING
    assert await other.end(commit=True) == errors.INVALID_PRODUCER_ID_MAPPING
    other.name, other.id = "n", one.id + 1
    assert await other.add() == errors.INVALID_PRODUCER_ID_MAPPING


async def test_an_end_that_is_asked_for_again(stage: Stage) -> None:
    one = await producer(stage)
    assert await one.end(commit=True) == errors.INVALID_TXN_STATE
    await one.add()
    assert await one.end(commit=True) == 0
    assert await one.end(commit=True) == 0
    assert await one.end(commit=False) == errors.INVALID_TXN_STATE


async def test_offsets_are_added_by_group(stage: Stage) -> None:
    one = await producer(stage)
    request = AddOffsetsToTxnRequest(
        transactional_id="n", producer_id=one.id, producer_epoch=one.epoch, group_id="g"
    )
    assert (await one.client.exchange(request)).error_code == 0
    found = stage.front.services.transactions.find("n")
    assert found is not None
    assert found.participants == ("g",)


async def test_where_it_is_decided_that_a_log_ends(stage: Stage) -> None:
    one = await producer(stage)
    await one.client.produce("t", batch(b"plain"))
    await one.add()
    await one.write(b"a")

    async def listed(timestamp: int, isolation: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = [ListOffsetsTopic(name="t", partitions=[part])]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
        offset: int = (await one.client.exchange(request, 7)).topics[0].partitions[0].offset
        return offset

    assert [await listed(-1, isolation) for isolation in (0, 1)] == [2, 1]
    assert [await listed(0, isolation) for isolation in (0, 1)] == [0, 0]
    await one.end(commit=True)
    assert [await listed(-1, isolation) for isolation in (0, 1)] == [3, 3]


async def test_a_transaction_of_a_sink_ends_with_its_batch_only(stage: Stage) -> None:
    sinks = stage.front.services.sinks
    begun = await sinks.begin("s", "q", 0, 1000)
    assert begun is not None
    one = Producer(await stage.client("t"), begun.name)
    one.id, one.epoch = begun.writer, begun.epoch
    assert await one.add() == 0
    assert await one.write(b"a") == 0
    assert await one.end(commit=True) == errors.INVALID_TXN_STATE
    assert await one.init() == errors.INVALID_TXN_STATE
    assert values(await committed(one.client)) == []
    await sinks.commit("s", "q", 0, [(begun.writer, begun.epoch)])
    assert values(await committed(one.client)) == [(0, b"a")]
    assert await one.write(b"late") == errors.INVALID_PRODUCER_EPOCH
    assert await one.add() == errors.PRODUCER_FENCED
