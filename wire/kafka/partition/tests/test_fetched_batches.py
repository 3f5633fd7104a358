"""Fetching from logs with holes: offsets are those of the batches, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.entry.kafka import record_batch
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled, stored
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.messages.records import FetchedPartition
from magnetar.wire.kafka.messages.topics import CreateTopic, CreateTopicsRequest
from magnetar.wire.kafka.tests.batch import batch, record

T = TopicName.parse("t")


def keyed(*keys: bytes) -> bytes:
    """A batch of records with these keys."""
    made = batch(*keys)
    records = b"".join(record(place, b"v", key) for place, key in enumerate(keys))
    body = made[21:61] + records
    head = made[:8] + (len(body) + 9).to_bytes(4, "big") + made[12:17]
    return head + crc32c(body).to_bytes(4, "big") + body


def batches(found: FetchedPartition) -> list[tuple[int, int, list[Any]]]:
    """First and last offset, and the offsets and keys of the records."""
    data, results = bytes(found.records or b""), []
    while data:
        header = record_batch.header_of(data)
        one, data = data[: header.size + 12], data[header.size + 12 :]
        first = header.base_offset
        records = [(first + each.place, each.key) for each in record_batch.records_of(one)]
        results.append((first, first + header.last_delta, records))
    return results


async def compacted(stage: Stage) -> Client:
    """Twenty-two batches of two records, in ledgers of ten; of the first twenty, few are left."""
    client = await stage.client()
    expected_value = CreateTopic(
        name="t",
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[ConfigValue(name="cleanup.policy", value="compact")],
    )
    await client.exchange(CreateTopicsRequest(topics=[expected_value]))
    for number in range(22):
        await client.produce("t", keyed(b"k", b"%d" % (number // 4)))
    topic = await stage.broker.topic(T.partition(0), create=False)
    assert isinstance(topic, PersistentTopic)
    await stage.broker.housekeeping.compactor.compact(topic)
    assert topic.ledger.chain.rewritten == 1
    return client


LEFT = [
    (6, 7, [(7, b"0")]),
    (14, 15, [(15, b"1")]),
    (22, 23, [(23, b"2")]),
    (30, 31, [(31, b"3")]),
    (38, 39, [(38, b"k"), (39, b"4")]),
    (40, 41, [(40, b"k"), (41, b"5")]),
    (42, 43, [(42, b"k"), (43, b"5")]),
]


async def test_what_is_left_keeps_its_offsets(stage: Stage) -> None:
    client = await compacted(stage)
    for offset in range(44):
        expected = [one for one in LEFT if one[1] >= offset]
        assert batches(await client.fetch("t", offset)) == expected
    assert (await client.fetch("t", 0)).log_start_offset == 0


@pytest.mark.parametrize("size", [1, 150, 300])
async def test_a_little_at_a_time(stage: Stage, size: int) -> None:
    client, found, offset = await compacted(stage), [], 0
    while offset < 44:
        results = batches(await client.fetch("t", offset, size=size))
        assert len(results) >= 1
        found += results
        offset = results[-1][1] + 1
    assert found == LEFT


async def test_other_protocols_entries_among_holes(stage: Stage) -> None:
    client = await compacted(stage)
    topic = await stage.broker.topic(T.partition(0), create=False)
    assert isinstance(topic, PersistentTopic)
    await stored(topic.ledger, entry(b"v", key=b"5"), entry(b"v", key=b"k"))
    *kept, foreign = batches(await client.fetch("t", 0))
    assert kept == LEFT
    assert foreign == (44, 45, [(44, b"5"), (45, b"k")])


@pytest.mark.parametrize("written", [True, False], ids=["being written", "ended"])
async def test_what_is_at_hand_is_given_at_once(stage: Stage, written: bool) -> None:
    client, large = await stage.client("t"), batch(*[b"x" * 40] * 20)
    await client.produce("t", *[large] * 4)
    topic = await stage.broker.topic(T.partition(0), create=False)
    assert isinstance(topic, PersistentTopic)
    if not written:
        await topic.ledger.roll()
    stage.broker.tail_cache.bytes_max = 0
    stage.broker.tail_cache.evict()
    found = batches(await client.fetch("t", 0, size=len(large)))
    assert [base for base, _, _ in found] == [0]
    client.ask(fetch_request("t", 20), 12)
    assert client.receive() == [], "it has to be read"
    await settled()
    assert len(client.receive()) == 1
    stage.stores.ledgers.at_hand = True
    client.ask(fetch_request("t", 20, size=2 * len(large) + 100), 12)
    (received,) = client.receive()
    assert [base for base, _, _ in batches(received.responses[0].partitions[0])] == [20, 40]
