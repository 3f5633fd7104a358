"""What is stored, where, and what is said of it: whether a client says it for the first time, in
words that have come before (`single_batch.py`), or so that its batches are received by themselves.
"""

from __future__ import annotations

import pytest
import trio
import trio.lowlevel

from magnetar.core.broker import administration
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.kafka.compression import compress_records
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.testing.bench import settled
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.configs import applied as apply_configs
from magnetar.wire.kafka.conftest import Client, Stage, produce_request
from magnetar.wire.kafka.messages.records import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from magnetar.wire.kafka.partition import batches
from magnetar.wire.kafka.tests.batch import batch, headed, record

WAYS = ["first", "again", "large"]


@pytest.fixture(params=WAYS)
def stage(request: pytest.FixtureRequest, stage: Stage) -> Stage:
    stage.known, stage.large = request.param != "first", request.param == "large"
    return stage


@pytest.fixture(params=WAYS)
def slow_stage(request: pytest.FixtureRequest, slow_stage: Stage) -> Stage:
    slow_stage.known, slow_stage.large = request.param != "first", request.param == "large"
    return slow_stage


async def test_offsets_count_records(stage: Stage) -> None:
    client = await stage.client("t")
    assert (await client.produce("t", batch(b"a", b"b", b"c"))).base_offset == 0
    assert (await client.produce("t", batch(b"d"))).base_offset == 3
    assert (await client.fetch("t", 0)).high_watermark == 4


async def test_nothing_is_said_before_it_is_stored(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    client.ask(produce_request("t", batch(b"a")), 9)
    client.ask(produce_request("t", batch(b"b", b"c")), 9)
    await settled()
    assert client.receive() == []
    slow_stage.stores.ledgers.sync()
    await settled()
    replies = [each.responses[0].partition_responses[0].base_offset for each in client.receive()]
    assert replies == [0, 1]


async def test_a_bad_batch_spares_the_others(stage: Stage) -> None:
    client = await stage.client("t")
    bad = batch(b"a")[:-1] + b"\xff"
    assert (await client.produce("t", bad)).error_code == errors.CORRUPT_MESSAGE
    assert (await client.produce("t", b"")).error_code == errors.CORRUPT_MESSAGE
    assert (await client.produce("t", batch(b"a"))).base_offset == 0


async def test_topics_and_partitions_that_are_not_there(stage: Stage) -> None:
    client = await stage.client("t")
    assert (await client.produce("unknown", batch(b"a"))).error_code == errors.UNKNOWN_TOPIC
    replies = await client.exchange(produce_request("t", batch(b"a"), index=7), 9)
    results = replies.responses[0].partition_responses[0]
    assert (results.index, results.error_code) == (7, errors.UNKNOWN_TOPIC)


async def test_without_acks_nothing_is_said_and_order_is_kept(stage: Stage) -> None:
    client = await stage.client("t")
    client.ask(produce_request("t", batch(b"a"), acks=0), 9)
    assert (await client.produce("t", batch(b"b"))).base_offset == 1
    client.ask(produce_request("t", b"nonsense", acks=0), 9)
    await settled()
    assert client.receive() == []
    assert client.line.ending is not None


async def test_what_comes_while_a_topic_is_loaded_waits_for_it(stage: Stage) -> None:
    first = await stage.client("t", "other")
    await first.produce("t", batch(b"before"))
    client = await stage.client()
    stage.front.services.logs._known.clear()
    for place in range(5):
        client.ask(produce_request("t", batch(b"%d" % place)), 9)
    await settled()
    offsets = [each.responses[0].partition_responses[0].base_offset for each in client.receive()]
    assert offsets == [1, 2, 3, 4, 5]


async def test_once_across_connections_and_a_reload(stage: Stage) -> None:
    client = await stage.client("t")
    once = batch(b"a", b"b", producer=(9, 0, 0))
    assert (await client.produce("t", once)).base_offset == 0
    assert (await client.produce("t", once)).base_offset == 0
    gap = batch(b"z", producer=(9, 0, 5))
    assert (await client.produce("t", gap)).error_code == errors.OUT_OF_ORDER
    for topic in list(stage.broker.topics.values()):
        await stage.broker.unload(topic.name)
    other = await stage.client()
    assert (await other.produce("t", once)).base_offset == 0, "known from the log"
    assert (await other.produce("t", batch(b"c", producer=(9, 0, 2)))).base_offset == 2


async def test_storage_that_refuses(slow_stage: Stage) -> None:
    client = await slow_stage.client("t")
    once = batch(b"a", producer=(9, 0, 0))
    client.ask(produce_request("t", once), 9)
    await settled()
    for ledger in slow_stage.stores.ledgers.ledgers.values():
        ledger.fail(StorageFailed("no"))
    await settled()
    (replies,) = client.receive()
    assert replies.responses[0].partition_responses[0].error_code != 0


async def configured(stage: Stage, **configs: str) -> None:
    name = TopicName.parse("t")
    expected = {key.replace("_", "."): value for key, value in configs.items()}
    applied = apply_configs(TopicPolicies(), expected, stage.front.services.defaults)
    await stage.broker.catalog.set_topic_policies(name, applied)
    await stage.broker.apply_policies(name.namespace)
    await settled()


@pytest.mark.parametrize(
    ("configs", "made", "code"),
    [
        ({"max_message_bytes": "60"}, batch(b"a"), errors.MESSAGE_TOO_LARGE),
        ({"min_insync_replicas": "2"}, batch(b"a"), errors.NOT_ENOUGH_REPLICAS),
        ({"cleanup_policy": "compact"}, batch(b"a"), errors.INVALID_RECORD),
        ({}, batch(b"a", timestamp_ms=2**60), errors.INVALID_TIMESTAMP),
        (
            {"message_timestamp_before_max_ms": "1000"},
            batch(b"a", timestamp_ms=1),
            errors.INVALID_TIMESTAMP,
        ),
    ],
)
async def test_topics_have_rules_of_their_own(
    stage: Stage, configs: dict[str, str], made: bytes, code: int
) -> None:
    client = await stage.client("t")
    await configured(stage, **configs)
    results = await client.produce("t", made)
    assert results.error_code == code
    if code == errors.INVALID_RECORD:
        (record,) = results.record_errors
        assert record.batch_index == 0
    await configured(stage)
    assert (await client.produce("t", batch(b"a"))).error_code == 0


async def answered(client: Client) -> list[ProducedPartition]:
    """What all that it asked came to, threads and all."""
    while client.wire.waiting:
        await trio.lowlevel.checkpoint()
    return [each.responses[0].partition_responses[0] for each in client.receive()]


async def test_batches_are_compressed_as_the_topic_has_it(stage: Stage) -> None:
    client = await stage.client("t")
    await configured(stage, compression_type="lz4")
    values = [b"%d" % number for number in range(20)]
    came = batch(*values, producer=(9, 0, 0))
    damaged, nonsense = batch(b"a")[:-1] + b"\xff", batch(b"a", attributes=4)
    for each in (came, came, damaged, nonsense):  # the second time it is known already
        client.ask(produce_request("t", each), 9)
    results = await answered(client)
    assert [one.base_offset for one in results] == [0, 0, -1, -1]
    assert [one.error_code for one in results] == [
        0,
        0,
        errors.CORRUPT_MESSAGE,
        errors.INVALID_RECORD,
    ]
    stored = (await client.fetch("t", 0)).records
    assert stored is not None
    header = record_batch.header_of(stored)
    assert header.attributes == 3
    assert header.producer_id == 9
    batches.check(stored, header)
    assert [one.value for one in record_batch.records_of(stored)] == values


async def test_every_bad_record_is_named(stage: Stage) -> None:
    client = await stage.client("t")
    bad = headed(record(0, b"a") + record(5, b"b") + record(2, b"c") + record(9, b"d"), 4)
    results = await client.produce("t", bad)
    assert results.error_code == errors.INVALID_RECORD
    assert [one.batch_index for one in results.record_errors] == [1, 3]
    assert (await client.produce("t", batch(b"a"))).base_offset == 0


async def test_what_is_much_uncompressed_is_looked_through_meanwhile(stage: Stage) -> None:
    client = await stage.client("t")
    much = record(0, bytes(batches.AT_ONCE_BYTES_MAX))
    good, bad = much + record(1, b"x"), much + record(7, b"x")
    for records in (good, bad, good):
        packed = compress_records(records, 3)
        client.ask(produce_request("t", headed(packed, 2, attributes=3)), 9)
    client.ask(produce_request("t", batch(b"a")), 9)
    results = await answered(client)
    assert [one.error_code for one in results] == [0, errors.INVALID_RECORD, 0, 0]
    assert [one.base_offset for one in results] == [0, -1, 2, 4], "in their order"


async def test_what_waits_to_be_compressed_is_overtaken_by_nothing(stage: Stage) -> None:
    client = await stage.client("t", "other")
    await configured(stage, compression_type="gzip")
    for number in range(5):
        client.ask(produce_request("t", batch(b"%d" % number)), 9)
        client.ask(produce_request("other", batch(b"x")), 9)
    results = await answered(client)
    assert [one.base_offset for one in results] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


async def test_the_time_may_be_the_brokers(stage: Stage) -> None:
    client = await stage.client("t")
    await configured(stage, message_timestamp_type="LogAppendTime")
    results = await client.produce("t", batch(b"a", timestamp_ms=5))
    now_ms = stage.broker.clock.wall_ms()
    assert results.log_append_time_ms == now_ms
    data = (await client.fetch("t", 0)).records or b""
    assert [record.timestamp_ms for record in record_batch.records_of(data)] == [now_ms]


async def test_acks_that_there_are_not(stage: Stage) -> None:
    client = await stage.client("t")
    results = await client.produce("t", batch(b"a"), acks=2)
    assert results.error_code == errors.INVALID_REQUIRED_ACKS


async def test_topics_by_their_ids(stage: Stage) -> None:
    client = await stage.client("t")
    topic_id = await stage.broker.topic_ids.of(TopicName.parse("t"))

    async def produced(expected: bytes) -> int:
        part = ProducePartition(index=0, records=batch(b"a"))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[ProduceTopic(topic_id=expected, partition_data=[part])],
        )
        (results,) = (await client.exchange(request, 13)).responses
        assert results.topic_id == expected
        code: int = results.partition_responses[0].error_code
        return code

    assert await produced(topic_id) == 0
    assert await produced(topic_id) == 0
    assert await produced(b"x" * 16) == errors.UNKNOWN_TOPIC_ID
    await administration.delete_partitioned(stage.broker, TopicName.parse("t"), force=True)
    assert await produced(topic_id) == errors.UNKNOWN_TOPIC_ID
    await stage.client("t")
    assert await produced(topic_id) == errors.UNKNOWN_TOPIC_ID


async def test_who_is_too_fast_is_told_and_not_read(stage: Stage) -> None:
    client = await stage.client("t")
    await stage.broker.catalog.set_topic_policies(
        TopicName.parse("t"),
        TopicPolicies(publish_rate={"publishThrottlingRateInMsg": 1}),
    )
    await stage.broker.apply_policies(TopicName.parse("t").namespace)
    await settled()
    client.ask(produce_request("t", batch(b"a", b"b")), 9)
    await settled()
    (replies,) = client.receive()
    assert replies.throttle_time_ms > 0
    assert replies.responses[0].partition_responses[0].error_code == 0
    assert client.line.paused
