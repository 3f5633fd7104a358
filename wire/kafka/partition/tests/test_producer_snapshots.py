"""Producers are known again after a restart, in order or not, and who only reads pays nothing."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from msgspec.structs import replace

from magnetar.core.broker import administration
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.fold.fold import Snapshot
from magnetar.core.testing.bench import log_reads
from magnetar.core.testing.broker import running
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.partition import producer_snapshots
from magnetar.wire.kafka.partition.producer_snapshots import decode, encode
from magnetar.wire.kafka.partition.producer_states import ProducerImage
from magnetar.wire.kafka.tests.batch import batch

NAME = TopicName.parse("t-partition-0")


async def written(client: Client, *firsts: int, producer: int = 7) -> list[tuple[int, int]]:
    """Batches of two, by their first numbers: what was said of each."""
    results = []
    for first in firsts:
        part = await client.produce("t", batch(b"a", b"b", producer=(producer, 0, first)))
        results.append((part.error_code, part.base_offset))
    return results


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where logs were read from storage."""
    return log_reads(monkeypatch)


async def again(stage: Stage, broker: Broker) -> Client:
    return await Stage(stage.stores, broker).client("t")


@pytest.mark.parametrize("killed", [True, False])
async def test_a_batch_that_comes_again_is_known(stage: Stage, killed: bool) -> None:
    client = await stage.client("t")
    assert await written(client, 0, 2, 4) == [(0, 0), (0, 2), (0, 4)]
    if not killed:
        await stage.broker.stop()
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        assert await written(client, 4, 2) == [(0, 4), (0, 2)]
        assert await written(client, 8) == [(errors.OUT_OF_ORDER, -1)]
        assert await written(client, 6) == [(0, 6)]


async def test_what_a_snapshot_covers_is_not_read_again(stage: Stage, reads: list[Any]) -> None:
    client = await stage.client("t")
    await written(client, *range(0, 40, 2))
    await stage.broker.stop()
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        reads.clear()
        assert await written(client, 38, 40) == [(0, 38), (0, 40)]
        assert reads == []


async def test_who_only_reads_loads_nothing(stage: Stage, reads: list[Any]) -> None:
    client = await stage.client("t")
    await written(client, *range(0, 40, 2))
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        reads.clear()
        found = await client.fetch("t", 40)
        assert (found.error_code, found.high_watermark) == (0, 40)
        assert reads == []


async def test_the_end_of_a_log_is_enough(
    stage: Stage, reads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = replace(producer_snapshots.SNAPSHOT_POLICY, replay_entries=3)
    monkeypatch.setattr(producer_snapshots, "SNAPSHOT_POLICY", rules)
    client = await stage.client("t")
    await written(client, 0, producer=8)
    await written(client, *range(0, 40, 2))
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        assert await written(client, 38, 40) == [(0, 40), (0, 42)]
        assert await written(client, 4, producer=8) == [(0, 44)], "it is forgotten"


async def test_a_topic_that_is_made_again_knows_nobody(stage: Stage) -> None:
    client = await stage.client("t")
    await written(client, 0)
    await stage.broker.unload(NAME)
    await written(client, 2)
    await administration.delete_partitioned(stage.broker, TopicName.parse("t"), force=True)
    path = f"{producer_snapshots.SNAPSHOTS}/public/default/persistent"
    assert await stage.stores.metadata.children(path) == []
    client = await stage.client("t")
    assert await written(client, 2) == [(0, 0)]


async def test_a_log_that_could_not_be_read_is_tried_again(stage: Stage) -> None:
    """Nothing of the first try is left over."""
    client = await stage.client("t")
    await written(client, 0, 2)
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        read = stage.stores.metadata.get

        async def fail(path: str) -> Any:
            if path.startswith(producer_snapshots.SNAPSHOTS):
                raise StorageFailed("no")
            return await read(path)

        stage.stores.metadata.get = fail  # type: ignore[method-assign]
        assert (await written(client, 2))[0][0] != 0
        stage.stores.metadata.get = read  # type: ignore[method-assign]
        assert await written(client, 2, 4) == [(0, 2), (0, 4)]


def test_snapshots_of_older_versions_are_read() -> None:
    """Bytes of one, from before the time of creation was noted."""
    old = bytes.fromhex("789c9b3489997de2144ec6f30c0c8cdde79f66304c9accc0a8319989490b00747007e4")
    image = [ProducerImage(9, 1, 1_700_000_000_000, [(0, 1, 40), (2, 2, 42)])]
    assert decode(zlib.decompress(old)) == Snapshot((3, 7), image, 0)
    new = Snapshot((3, 7), image, 5)
    assert decode(encode(new)) == new
