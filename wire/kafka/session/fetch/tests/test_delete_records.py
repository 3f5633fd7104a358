"""Records that are deleted: for Kafka's clients, for Pulsar's, and after a start."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.broker import running
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.messages.records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from magnetar.wire.kafka.messages.topics import CreateTopic, CreateTopicsRequest
from magnetar.wire.kafka.tests.batch import batch


async def deleted(client: Client, offset: int, topic: str = "t") -> tuple[int, int]:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    requested = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=1000
    )
    results = (await client.exchange(requested)).topics[0].partitions[0]
    return results.error_code, results.low_watermark


async def filled(stage: Stage) -> Client:
    """Thirteen batches of two records, in ledgers of ten batches."""
    client = await stage.client("t")
    for number in range(13):
        await client.produce("t", batch(b"%d" % number, b"x"))
    return client


async def topic_of(stage: Stage) -> PersistentTopic:
    topic = await stage.broker.topic(TopicName.parse("t").partition(0), create=False)
    assert isinstance(topic, PersistentTopic)
    return topic


async def test_a_log_begins_where_it_is_told_to(stage: Stage) -> None:
    client = await filled(stage)
    assert await deleted(client, 5) == (0, 5)
    assert (await client.fetch("t", 4)).error_code == errors.OFFSET_OUT_OF_RANGE
    found = await client.fetch("t", 5)
    assert (found.error_code, found.log_start_offset) == (0, 5)
    assert bytes(found.records or b"")[:8] == (4).to_bytes(8, "big"), "the whole batch"
    assert await deleted(client, 3) == (0, 5), "it was deleted before"
    assert await deleted(client, 21) == (0, 21)
    assert len(stage.stores.ledgers.ledgers) == 1, "a ledger before it is gone"


async def test_it_holds_after_a_start(stage: Stage) -> None:
    assert await deleted(await filled(stage), 5) == (0, 5)
    async with running(stage.stores) as broker:  # nobody has closed anything
        client = await Stage(stage.stores, broker).client()
        assert (await client.fetch("t", 4)).error_code == errors.OFFSET_OUT_OF_RANGE
        assert (await client.fetch("t", 5)).log_start_offset == 5


@pytest.mark.parametrize("offset", [-1, 26])
async def test_everything(stage: Stage, offset: int) -> None:
    client = await filled(stage)
    assert await deleted(client, offset) == (0, 26)
    assert stage.stores.ledgers.ledgers == {}
    found = await client.fetch("t", 26)
    assert (found.error_code, found.high_watermark, found.log_start_offset) == (0, 26, 26)
    assert (await client.produce("t", batch(b"new"))).base_offset == 26
    assert (await client.fetch("t", 26)).records


async def test_subscriptions_go_on_behind_it(stage: Stage) -> None:
    client = await filled(stage)
    topic = await topic_of(stage)
    subscription = await topic.subscription("s", start=START)
    assert await deleted(client, 7) == (0, 7)
    chain = topic.ledger.chain
    assert subscription.cursor.read_from == chain.first
    assert subscription.cursor.backlog == chain.entries == 10


async def test_what_is_refused(stage: Stage) -> None:
    client = await filled(stage)
    out = (errors.OFFSET_OUT_OF_RANGE, -1)
    assert await deleted(client, 27) == await deleted(client, -2) == out
    assert await deleted(client, 0, "unknown") == (errors.UNKNOWN_TOPIC, -1)
    expected = CreateTopic(
        name="c",
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[ConfigValue(name="cleanup.policy", value="compact")],
    )
    await client.exchange(CreateTopicsRequest(topics=[expected], timeout_ms=1000))
    assert await deleted(client, 0, "c") == (errors.POLICY_VIOLATION, -1)
