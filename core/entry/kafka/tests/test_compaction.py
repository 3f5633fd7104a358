"""Kafka's batches without some of their records: what stays is as it was."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.compaction.tests.histories import batch
from magnetar.core.entry.compaction import Item, Removal
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.kafka.compaction import HORIZON, UnpackedBatch
from magnetar.core.entry.kafka.record_batch import CODEC, LOG_APPEND_TIME, header_of
from magnetar.core.entry.record import Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted

RECORDS = st.lists(
    st.tuples(st.binary(max_size=9), st.one_of(st.none(), st.binary(max_size=200))), min_size=1
)


def checked(made: bytes) -> record_batch.BatchHeader:
    """Its header, if its size and sum are right."""
    header = header_of(made)
    assert header.size == len(made) - 12
    assert header.checksum == crc32c(made[21:])
    return header


@given(RECORDS, st.integers(0, 4), st.sets(st.integers(0, 9)), st.sampled_from([-1, 5_000_000]))
def test_what_stays_is_as_it_was(
    records: list[tuple[bytes, bytes | None]], codec: int, lost: set[int], horizon_ms: int
) -> None:
    before = batch(records, codec, producer_id=7)
    taken = UnpackedBatch(b"head" + before, 4)
    assert taken.items == [
        Item(place, key, -1 if value is None else len(value))
        for place, (key, value) in enumerate(records)
    ]
    made = taken.without(Removal(lost, horizon_ms))
    assert made[:4] == b"head"
    old, new = header_of(before), checked(made[4:])
    kept = [one for one in record_batch.records_of(before) if one.place not in lost]
    assert record_batch.records_of(made[4:]) == kept
    assert (new.last_delta, new.records) == (old.last_delta, len(kept))
    assert (new.producer_id, new.producer_epoch, new.first_sequence) == (7, 0, 0)
    if kept:
        assert new.last_timestamp == max(one.timestamp_ms for one in kept)
        assert new.attributes == codec | (HORIZON if horizon_ms >= 0 else 0)
        assert UnpackedBatch(made, 4).tombstones_until_ms == horizon_ms
    else:
        assert (len(made), new.attributes, new.first_timestamp) == (4 + 61, 0, -1)
        assert new.last_timestamp == old.last_timestamp


def test_a_time_that_is_noted_stays() -> None:
    once = UnpackedBatch(batch([(b"a", None), (b"b", b"x")]), 0).without(Removal((1,), 9_000))
    twice = UnpackedBatch(once, 0).without(Removal(()))
    assert UnpackedBatch(twice, 0).tombstones_until_ms == 9_000
    assert record_batch.records_of(twice) == [Record(0, 1000, b"a", None, [(b"h", b"x")])]


def test_times_of_the_server_stay() -> None:
    stamped = record_batch.stamped(batch([(b"a", b"1"), (b"b", b"2")]), 77_000)
    made = UnpackedBatch(stamped, 0).without(Removal((1,), 9_000))
    assert checked(made).last_timestamp == 77_000
    assert (
        checked(made).attributes & (LOG_APPEND_TIME | HORIZON | CODEC) == LOG_APPEND_TIME | HORIZON
    )
    assert [one.timestamp_ms for one in record_batch.records_of(made)] == [77_000]


def test_an_empty_batch_is_taken_apart() -> None:
    empty = UnpackedBatch(batch([(b"a", b"1")], 3), 0).without(Removal((0,)))
    assert UnpackedBatch(empty, 0).items == []


@given(st.data())
def test_damage(data: st.DataObject) -> None:
    whole = batch([(b"key", b"value"), (b"k", None)], 0)
    at = data.draw(st.integers(0, len(whole) - 1))
    spoiled = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + 1 :]
    with suppress(Corrupted):
        UnpackedBatch(spoiled, 0)
    with pytest.raises(Corrupted):
        UnpackedBatch(whole[: min(at, len(whole) - 3)], 0)
