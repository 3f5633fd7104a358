"""Producers are known again after a restart, in order or not, and who only reads pays nothing."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core import administration
from magnetar.core.broker import Broker
from magnetar.core.entry import kafka_batch
from magnetar.core.ledger.managed import ManagedLedger
from magnetar.core.names import TopicName
from magnetar.core.testing.broker import running
from magnetar.core.testing.metadata import overwrite
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.session import recall
from magnetar.wire.kafka.session.tests.conftest import Client, Stage
from magnetar.wire.kafka.tests.batch import batch

NAME = TopicName.parse("t-partition-0")


async def written(client: Client, *firsts: int, producer: int = 7) -> list[tuple[int, int]]:
    """Batches of two, by their first numbers: what was said of each."""
    told = []
    for first in firsts:
        part = await client.produce("t", batch(b"a", b"b", producer=(producer, 0, first)))
        told.append((part.error_code, part.base_offset))
    return told


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where logs were read from storage."""
    seen: list[Any] = []
    read = ManagedLedger.read

    async def reading(self: ManagedLedger, position: Any, *more: Any) -> Any:
        seen.append(position)
        return await read(self, position, *more)

    monkeypatch.setattr(ManagedLedger, "read", reading)
    return seen


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


async def test_what_was_noted_is_not_read_again(stage: Stage, reads: list[Any]) -> None:
    client = await stage.client("t")
    await written(client, *range(0, 40, 2))
    await stage.broker.stop()
    async with running(stage.stores) as broker:
        client = await again(stage, broker)
        reads.clear()
        assert await written(client, 38, 40) == [(0, 38), (0, 40)]
        assert reads == []


async def test_who_only_reads_recalls_nothing(stage: Stage, reads: list[Any]) -> None:
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
    monkeypatch.setattr(recall, "RECALLED_ENTRIES", 3)
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
    assert await stage.stores.metadata.children(recall.NOTES + "/public/default/persistent") == []
    client = await stage.client("t")
    assert await written(client, 2) == [(0, 0)]


async def test_notes_of_another_log_are_not_believed(stage: Stage) -> None:
    client = await stage.client("t")
    await written(client, 0)
    log = stage.front.logs.at_once("t", 0)
    assert log is not None
    notes = recall.Notes((999, 0), [])
    path = f"{recall.NOTES}/{log.topic.ledger.name}"
    packed = recall.zlib.compress(recall._encode(notes))
    await overwrite(stage.stores.metadata, path, packed)
    async with running(stage.stores) as broker:
        assert await written(await again(stage, broker), 0, 2) == [(0, 0), (0, 2)]


async def test_transactions_are_not_among_producers(stage: Stage) -> None:
    """A marker has no number: it is no batch of its producer."""
    client = await stage.client("t")
    await written(client, 0)
    log = stage.front.logs.at_once("t", 0)
    assert log is not None
    log.producers.note(kafka_batch.header_of(kafka_batch.marker(7, 0, 1, committed=True)), 2, 0)
    assert await written(client, 2) == [(0, 2)]


async def test_names_of_one_topic_lead_to_one_log(stage: Stage) -> None:
    """What was written by one name is known by another."""
    client = await stage.client("t")
    once = batch(b"a", producer=(7, 0, 0))
    names = ["t", "public/default/t", "persistent://public/default/t"]
    told = [await client.produce(name, once) for name in names]
    assert [(part.error_code, part.base_offset) for part in told] == [(0, 0)] * 3


@pytest.mark.parametrize("way", ["unloaded", "deleted"])
async def test_logs_are_forgotten_with_their_topics(stage: Stage, way: str) -> None:
    client = await stage.client("t")
    for name in ("t", "public/default/t"):
        await client.produce(name, batch(b"a"))
    logs = stage.front.logs
    assert (len(logs._known), len(logs._of_topics)) == (2, 1)
    if way == "unloaded":
        await stage.broker.unload(NAME)
    else:
        await stage.broker.delete(NAME, force=True)
    assert (logs._known, logs._of_topics) == ({}, {})
