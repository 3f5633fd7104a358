"""Where partitions begin and end."""

from __future__ import annotations

from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage, produce_request
from magnetar.wire.kafka.messages.records import (
    EndEpochPartition,
    EndEpochTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)
from magnetar.wire.kafka.tests.batch import batch

Told = tuple[int, int, int, int]


async def results(client: Client, timestamp: int, version: int = 10, **more: int) -> Told:
    """Code, offset, time and epoch of partition 0."""
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, **more)
    requested = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[part])]
    )
    received = (await client.exchange(requested, version)).topics[0].partitions[0]
    return received.error_code, received.offset, received.timestamp, received.leader_epoch


async def listed(client: Client, timestamp: int, topic: str = "t") -> tuple[int, int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    requested = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])]
    )
    received = (await client.exchange(requested, 7)).topics[0].partitions[0]
    return received.error_code, received.offset


async def test_beginning_and_end(stage: Stage) -> None:
    client = await stage.client("t")
    assert await listed(client, -1) == await listed(client, -2) == (0, 0)
    await client.produce("t", batch(b"a", b"b"), batch(b"c"))
    assert await listed(client, -1) == (0, 3)
    assert await listed(client, -2) == (0, 0)
    assert await listed(client, -1, "unknown") == (errors.UNKNOWN_TOPIC, -1)


async def test_the_first_of_all_is_on_its_way(slow_stage: Stage) -> None:
    client, other = await slow_stage.client("t"), await slow_stage.client()
    client.ask(produce_request("t", batch(b"a", b"b")), 9)
    await settled()
    assert await listed(other, -1) == await listed(other, -2) == (0, 0)


async def test_records_by_their_times(stage: Stage) -> None:
    client = await stage.client("t")
    assert await results(client, 0) == await results(client, -3) == (0, -1, -1, -1)
    base = 1_700_000_000_000
    for late in (30, 10, 50, 20):
        await client.produce("t", batch(b"a", b"b", timestamp_ms=base + late))
    assert await results(client, 0) == (0, 0, base + 30, 0)
    assert await results(client, base + 31) == (0, 4, base + 50, 0)
    assert await results(client, base + 51) == (0, -1, -1, -1)
    assert await results(client, -3) == (0, 4, base + 50, 0)


async def test_times_that_are_none(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"))
    assert await results(client, -4) == (0, 0, -1, 0)
    assert await results(client, -5) == (0, -1, -1, -1)
    refused = (errors.UNSUPPORTED_VERSION, -1, -1, -1)
    assert await results(client, -6) == await results(client, -7) == refused
    assert await results(client, -3, 6) == await results(client, -4, 7) == refused


async def test_epochs_to_come(stage: Stage) -> None:
    client = await stage.client("t")
    assert await results(client, -1, current_leader_epoch=0) == (0, 0, -1, 0)
    refused = (errors.UNKNOWN_LEADER_EPOCH, -1, -1, -1)
    assert await results(client, -1, current_leader_epoch=1) == refused


async def test_no_epoch_ever_ends(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"))

    async def ended(leader_epoch: int, current: int = -1) -> tuple[int, int, int]:
        part = EndEpochPartition(
            partition=0, leader_epoch=leader_epoch, current_leader_epoch=current
        )
        requested = OffsetForLeaderEpochRequest(
            topics=[EndEpochTopic(topic="t", partitions=[part])]
        )
        results = (await client.exchange(requested)).topics[0].partitions[0]
        return results.error_code, results.leader_epoch, results.end_offset

    assert await ended(0) == await ended(5) == (0, 0, 2)
    assert await ended(-1) == (0, -1, -1)
    assert await ended(0, current=3) == (errors.UNKNOWN_LEADER_EPOCH, -1, -1)
