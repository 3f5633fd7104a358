"""Batches as Kafka's clients pack them; kafka-python is the other opinion."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.record import NO_TIME, Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted

maybe = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=9).map(str.encode), maybe), max_size=3)
contents = st.lists(
    st.tuples(st.integers(0, 2**45), maybe, maybe, headers.map(tuple)), min_size=1, max_size=9
)


def recorded(content: list[tuple]) -> list[Record]:
    return [Record(place, *each[:3], each[3]) for place, each in enumerate(content)]


def same(found: list[Record], expected: list[Record]) -> bool:
    return [(*each[:4], tuple(each[4])) for each in found] == [
        (*each[:4], tuple(each[4])) for each in expected
    ]


@given(contents)
def test_what_goes_in_comes_out(content: list[tuple]) -> None:
    records = recorded(content)
    assert same(record_batch.records_of(record_batch.batch_of(records, 7, len(records))), records)


@given(contents)
def test_a_stock_client_reads_what_we_write(content: list[tuple]) -> None:
    records = recorded(content)
    batch = DefaultRecordBatch(record_batch.batch_of(records, 70, len(records) + 3))
    assert batch.validate_crc()
    assert batch.base_offset == 70
    assert batch.last_offset_delta == len(records) + 2
    assert batch.max_timestamp == max(record.timestamp_ms for record in records)
    for record, found in zip(records, batch, strict=True):
        assert found.offset == 70 + record.place
        assert found.timestamp == record.timestamp_ms
        assert (found.key, found.value) == (record.key, record.value)
        assert [(name.encode(), value) for name, value in found.headers] == list(record.headers)


@given(contents)
def test_we_read_what_a_stock_client_writes(content: list[tuple]) -> None:
    records = recorded(content)
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for record in records:
        named = [(name.decode(), value) for name, value in record.headers]
        builder.append(record.place, record.timestamp_ms, record.key, record.value, named)
    assert same(record_batch.records_of(bytes(builder.build())), records)


def repacked(batch: bytes, inner: bytes, attributes: int) -> bytes:
    body = struct.pack(">h", attributes) + batch[23 : record_batch.HEADER_BYTES] + inner
    head = struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body))
    return head + body


RECORDS = [Record(place, 1000 + place, b"k", b"value" * 100) for place in range(50)]
BATCH = record_batch.batch_of(RECORDS, 0, 50)
INNER = BATCH[record_batch.HEADER_BYTES :]
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
PACKED = {
    "gzip": (1, gzip.compress(INNER)),
    "gzip in two": (1, gzip.compress(INNER[:100]) + gzip.compress(INNER[100:])),
    "snappy, bare": (2, bytes(cramjam.snappy.compress_raw(INNER))),
    "snappy, in blocks": (
        2,
        XERIAL
        + b"".join(
            struct.pack(">i", len(packed)) + packed
            for packed in (
                bytes(cramjam.snappy.compress_raw(INNER[at : at + 1000]))
                for at in range(0, len(INNER), 1000)
            )
        ),
    ),
    "lz4": (3, bytes(cramjam.lz4.compress(INNER))),
    "zstd": (4, bytes(cramjam.zstd.compress(INNER))),
}


@pytest.mark.parametrize("name", PACKED)
def test_every_codec(name: str) -> None:
    codec, inner = PACKED[name]
    assert record_batch.records_of(repacked(BATCH, inner, codec)) == RECORDS


@pytest.mark.parametrize("name", PACKED)
def test_cut_off_and_damaged(name: str) -> None:
    codec, inner = PACKED[name]
    for damaged in (inner[:-9], inner[: len(inner) // 2], b"", b"junk" * 9, inner[:20]):
        with pytest.raises(Corrupted):
            record_batch.records_of(repacked(BATCH, damaged, codec))


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (1, gzip.compress),
        (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
        (3, lambda data: bytes(cramjam.lz4.compress(data))),
        (4, lambda data: bytes(cramjam.zstd.compress(data))),
    ],
)
def test_a_bomb_is_not_blown_up(codec: int, pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magnetar.core.entry.kafka.compression.RECORDS_BYTES_MAX", 1_000_000)
    assert callable(pack)
    with pytest.raises(Corrupted, match="more than 1000000 bytes"):
        record_batch.records_of(repacked(BATCH, pack(b"\0" * 20_000_000), codec))


def test_an_unknown_codec() -> None:
    with pytest.raises(Corrupted, match="unknown way, 7"):
        record_batch.records_of(repacked(BATCH, INNER, 7))


def test_times_that_the_broker_gave() -> None:
    stamped = repacked(BATCH, INNER, record_batch.LOG_APPEND_TIME)
    assert {record.timestamp_ms for record in record_batch.records_of(stamped)} == {1049}


def test_stamped_by_the_broker() -> None:
    stamped = record_batch.stamped(BATCH, 77)
    assert DefaultRecordBatch(stamped).validate_crc()
    assert {record.timestamp_ms for record in record_batch.records_of(stamped)} == {77}
    assert [record.value for record in record_batch.records_of(stamped)] == [b"value" * 100] * 50


def test_no_time_at_all() -> None:
    none = Record(0, NO_TIME, None, b"v")
    assert record_batch.records_of(record_batch.batch_of([none], 0, 1)) == [none]


@pytest.mark.parametrize("place", [-1, 1 << 31, (1 << 63) - 1])
def test_a_record_of_no_place(place: int) -> None:
    with pytest.raises(Corrupted, match=f"number {place} of its batch"):
        record_batch.records_of(batch_of_one(b"\0" + record_batch.zigzag(place)))


def test_a_time_that_nobody_can_store() -> None:
    latest = record_batch.zigzag((1 << 63) - 1)
    (record,) = record_batch.records_of(batch_of_one(latest + b"\0", first_timestamp=1))
    assert record.timestamp_ms == NO_TIME


def batch_of_one(numbers: bytes, first_timestamp: int = 0) -> bytes:
    """A batch with one record of these numbers, without key, value and headers."""
    record = b"\0" + numbers + b"\x01\x01\0"
    batch = record_batch.batch_of([], 0, 1)
    head = record_batch.header_of(batch)._replace(records=1, first_timestamp=first_timestamp)
    return record_batch.joined(head, record_batch.zigzag(len(record)) + record)


@given(st.binary(max_size=300))
def test_arbitrary_bytes(data: bytes) -> None:
    for inner in (data, repacked(BATCH, data, 0), repacked(BATCH, INNER[:-1] + data, 0)):
        try:
            record_batch.records_of(inner)
        except Corrupted:
            continue


@given(st.integers(0, len(INNER) - 1), st.integers(1, 255))
def test_a_changed_byte(at: int, change: int) -> None:
    inner = bytearray(INNER)
    inner[at] ^= change
    with suppress(Corrupted):
        record_batch.records_of(repacked(BATCH, bytes(inner), 0))
