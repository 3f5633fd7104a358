"""Transactions as tools see and end them."""

from __future__ import annotations

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.parts import TopicIndexes
from magnetar.wire.kafka.messages.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WriteMarker,
    WriteTxnMarkersRequest,
)
from magnetar.wire.kafka.session.transactions.tests.test_transactions import committed, producer


async def test_tools_see_what_goes_on(stage: Stage) -> None:
    one = await producer(stage)
    await one.add()
    await one.write(b"a", b"b")
    client = one.client
    everything = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    (listed,) = (await client.exchange(everything)).transaction_states
    assert (listed.transactional_id, listed.transaction_state) == ("n", "Ongoing")
    filtered = ListTransactionsRequest(state_filters=["Empty", "Odd"], producer_id_filters=[])
    received = await client.exchange(filtered)
    assert (received.transaction_states, received.unknown_state_filters) == ([], ["Odd"])
    both = await client.exchange(DescribeTransactionsRequest(transactional_ids=["n", "none"]))
    known, unknown = both.transaction_states
    assert (known.transaction_state, known.topics[0].topic, known.topics[0].partitions) == (
        "Ongoing",
        "t",
        [0],
    )
    assert unknown.error_code == errors.TRANSACTIONAL_ID_NOT_FOUND
    requested = DescribeProducersRequest(topics=[TopicIndexes(name="t", partition_indexes=[0, 5])])
    (topic,) = (await client.exchange(requested)).topics
    (writing,) = topic.partitions[0].active_producers
    assert (writing.producer_id, writing.last_sequence) == (one.id, 1)
    assert writing.current_txn_start_offset == 0
    assert topic.partitions[1].error_code == errors.UNKNOWN_TOPIC


async def test_a_tool_ends_what_hangs(stage: Stage) -> None:
    one = await producer(stage)
    await one.add()
    await one.write(b"a")
    marker = WriteMarker(
        producer_id=one.id,
        producer_epoch=one.epoch,
        transaction_result=False,
        topics=[TopicIndexes(name="t", partition_indexes=[0, 5])],
        coordinator_epoch=0,
    )
    (results,) = (await one.client.exchange(WriteTxnMarkersRequest(markers=[marker]))).markers
    codes = [part.error_code for part in results.topics[0].partitions]
    assert codes == [0, errors.UNKNOWN_TOPIC]
    part = await committed(one.client)
    assert part.last_stable_offset == part.high_watermark == 2


async def test_the_list_is_narrowed_by_state_producer_and_duration(stage: Stage) -> None:
    """Only transactions that go on have a duration (KIP-994)."""
    one, other = await producer(stage, "a"), await producer(stage, "b")
    await one.add()

    async def listed(
        states: tuple[str, ...] = (), ids: tuple[int, ...] = (), duration_ms: int = -1
    ) -> list[str]:
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(ids),
            duration_filter=duration_ms,
        )
        received = await one.client.exchange(request)
        return sorted(found.transactional_id for found in received.transaction_states)

    assert await listed() == ["a", "b"]
    assert await listed(states=("Ongoing",)) == ["a"]
    assert await listed(states=("Empty",)) == ["b"]
    assert await listed(ids=(other.id,)) == ["b"]
    assert await listed(states=("Ongoing",), ids=(other.id,)) == []
    assert await listed(duration_ms=0) == ["a"]
    assert await listed(duration_ms=3_600_000) == []


async def test_a_transaction_that_is_over_has_neither_begin_nor_topics(stage: Stage) -> None:
    one = await producer(stage)
    await one.add()
    await one.end(commit=True)
    requested = DescribeTransactionsRequest(transactional_ids=["n"])
    (results,) = (await one.client.exchange(requested)).transaction_states
    assert (results.transaction_state, results.transaction_start_time_ms) == ("CompleteCommit", -1)
    assert results.topics == []


async def test_a_producer_without_a_transaction_is_described(stage: Stage) -> None:
    one = await producer(stage)
    await one.write(b"a", attributes=0)
    requested = DescribeProducersRequest(topics=[TopicIndexes(name="t", partition_indexes=[0])])
    (topic,) = (await one.client.exchange(requested)).topics
    (writer,) = topic.partitions[0].active_producers
    assert (writer.producer_id, writer.current_txn_start_offset) == (one.id, -1)
