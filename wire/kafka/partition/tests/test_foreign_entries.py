"""What Pulsar's producers brought, as Kafka's consumers fetch it."""

from __future__ import annotations

import pytest

from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.pulsar import form as pulsar
from magnetar.core.entry.record import Record
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.entries import entry
from magnetar.core.testing.entries import part as part_of
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.records import FetchedPartition
from magnetar.wire.kafka.partition import foreign_entries
from magnetar.wire.kafka.tests.batch import batch


async def topic_of(stage: Stage) -> PersistentTopic:
    found = await stage.broker.topic(TopicName.parse("t-partition-0"))
    assert isinstance(found, PersistentTopic)
    return found


async def published(stage: Stage, *entries: bytes) -> None:
    topic = await topic_of(stage)
    topic.publish(list(entries), None, lambda _: None)
    await settled()


def got(part: FetchedPartition) -> list[tuple[int, Record]]:
    """Offsets and records, of batches that are whole."""
    data, found = part.records or b"", []
    while data:
        header = record_batch.header_of(data)
        records = record_batch.records_of(data[: header.size + 12])
        found += [(header.base_offset + record.place, record) for record in records]
        data = data[header.size + 12 :]
    return found


def values(part: FetchedPartition) -> list[tuple[int, bytes | None]]:
    return [(offset, record.value) for offset, record in got(part)]


async def test_messages_have_their_offsets(stage: Stage) -> None:
    client = await stage.client("t")
    await published(stage, entry(b"a", key=b"k", published_ms=7), entry(b"b"))
    part = await client.fetch("t", 0)
    assert part.high_watermark == 2
    (first, _) = got(part)
    assert first == (0, Record(0, 7, b"k", b"a"))
    assert values(part) == [(0, b"a"), (1, b"b")]
    assert values(await client.fetch("t", 1)) == [(1, b"b")]


async def test_both_forms_side_by_side(stage: Stage) -> None:
    client = await stage.client("t")
    await published(stage, entry(b"a"), entry(b"b"))
    await client.produce("t", batch(b"c", b"d"))
    await published(stage, entry(b"e"))
    part = await client.fetch("t", 0)
    assert values(part) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b"e")]


async def test_parts_of_a_large_message_are_one(stage: Stage) -> None:
    client = await stage.client("t")
    parts = [entry(b"%d" % number, chunk=(b"u", number, 3)) for number in range(3)]
    await published(stage, parts[0], entry(b"other"), *parts[1:], entry(b"after"))
    part = await client.fetch("t", 0)
    assert values(part) == [(1, b"other"), (3, b"012"), (4, b"after")]
    assert values(await client.fetch("t", 3)) == [(3, b"012"), (4, b"after")]


async def test_a_large_message_that_is_not_whole_is_a_hole(stage: Stage) -> None:
    client = await stage.client("t")
    await published(stage, entry(b"2", chunk=(b"u", 2, 3)), entry(b"after"))
    assert values(await client.fetch("t", 0)) == [(1, b"after")]


async def test_what_nobody_can_read_is_a_hole(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    client = await stage.client("t")
    await published(stage, b"\0\0\0\x09nonsense", entry(b"after"))
    assert values(await client.fetch("t", 0)) == [(1, b"after")]
    assert "offset 0 is unreadable" in caplog.text


async def test_a_hole_at_the_end_moves_consumers_on(stage: Stage) -> None:
    """They go by what a batch covers, so that no lag is left for ever."""
    client = await stage.client("t")
    await published(stage, entry(b"0", chunk=(b"u", 0, 3)))
    header = record_batch.header_of((await client.fetch("t", 0)).records or b"")
    assert (header.base_offset, header.last_delta, header.records) == (0, 0, 0)


async def test_at_least_one_and_no_more_than_wanted(stage: Stage) -> None:
    client = await stage.client("t")
    await published(stage, *[entry(b"x" * 1000)] * 5)
    assert len(values(await client.fetch("t", 0, size=10))) == 1
    assert len(values(await client.fetch("t", 0, size=2500))) == 2


async def test_large_batches_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_entries, "BATCH_BYTES_MAX", 2000)
    client = await stage.client("t")
    await published(stage, *[entry(b"x" * 900)] * 5)
    data = (await client.fetch("t", 0)).records or b""
    assert record_batch.header_of(data).records == 3
    assert len(values(await client.fetch("t", 0))) == 5


async def test_aborted_messages_are_for_who_reads_uncommitted(stage: Stage) -> None:
    """Of transactions of other protocols; open ones end what `read_committed` gets."""
    client = await stage.client("t")
    topic = await topic_of(stage)
    await topic.begin_transactions()
    for key in ((0, 1), (0, 2), (0, 3)):
        done = topic.in_transaction(key, lambda _: None)
        topic.publish([part_of(key, b"%d" % key[1])], None, done)
    await settled()
    await topic.end_transaction(pulsar, (0, 1), 0, committed=False)
    await topic.end_transaction(pulsar, (0, 2), 0, committed=True)
    everything = await client.fetch("t", 0)
    assert values(everything) == [(0, b"1"), (1, b"2"), (2, b"3")]
    committed = await client.fetch("t", 0, committed=True)
    assert values(committed) == [(1, b"2")]
    assert (committed.last_stable_offset, committed.aborted_transactions) == (2, [])
    await topic.end_transaction(pulsar, (0, 3), 0, committed=True)
    assert values(await client.fetch("t", 0, committed=True)) == [(1, b"2"), (2, b"3")]
