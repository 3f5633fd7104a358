"""Where partitions begin and end."""

from __future__ import annotations

from wire.kafka import errors
from wire.kafka.messages.records import (
    EndEpochPartition,
    EndEpochTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)
from wire.kafka.session.tests.conftest import Client, Stage
from wire.kafka.tests.batch import batch


async def listed(client: Client, timestamp: int, topic: str = "t") -> tuple[int, int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    asked = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])]
    )
    told = (await client.hears(asked, 7)).topics[0].partitions[0]
    return told.error_code, told.offset


async def test_beginning_and_end(stage: Stage) -> None:
    client = await stage.client("t")
    assert await listed(client, -1) == await listed(client, -2) == (0, 0)
    await client.produce("t", batch(b"a", b"b"), batch(b"c"))
    assert await listed(client, -1) == (0, 3)
    assert await listed(client, -2) == (0, 0)
    assert await listed(client, -1, "unknown") == (errors.UNKNOWN_TOPIC, -1)
    assert await listed(client, 1_700_000_000_000) == (errors.UNSUPPORTED_VERSION, -1)


async def test_no_epoch_ever_ends(stage: Stage) -> None:
    client = await stage.client("t")
    await client.produce("t", batch(b"a", b"b"))

    async def ended(leader_epoch: int, current: int = -1) -> tuple[int, int, int]:
        part = EndEpochPartition(
            partition=0, leader_epoch=leader_epoch, current_leader_epoch=current
        )
        asked = OffsetForLeaderEpochRequest(topics=[EndEpochTopic(topic="t", partitions=[part])])
        told = (await client.hears(asked)).topics[0].partitions[0]
        return told.error_code, told.leader_epoch, told.end_offset

    assert await ended(0) == await ended(5) == (0, 0, 2)
    assert await ended(-1) == (0, -1, -1)
    assert await ended(0, current=3) == (errors.UNKNOWN_LEADER_EPOCH, -1, -1)
