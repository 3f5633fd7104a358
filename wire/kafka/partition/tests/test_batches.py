"""Which batches are taken, and what changes in one on its way out."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.kafka import record_batch
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.wire.kafka.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    KafkaRefusal,
)
from magnetar.wire.kafka.partition import batches
from magnetar.wire.kafka.tests.batch import batch


def checked(data: bytes) -> record_batch.BatchHeader:
    header = record_batch.header_of(data)
    batches.check(data, header)
    return header


def resealed(data: bytes) -> bytes:
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


def test_what_a_client_sends_is_taken() -> None:
    header = checked(batch(b"a", b"b", producer=(7, 1, 40)))
    assert (header.magic, header.last_delta, header.records) == (2, 1, 2)
    assert (header.producer_id, header.producer_epoch, header.first_sequence) == (7, 1, 40)


GOOD = batch(b"a", b"b")


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (GOOD + b"x", INVALID_RECORD),
        (GOOD + GOOD, INVALID_RECORD),
        (GOOD[:-1], INVALID_RECORD),
        (GOOD[:-1] + b"\xff", CORRUPT_MESSAGE),
        (GOOD[:16] + b"\x01" + GOOD[17:], INVALID_RECORD),
        (resealed(GOOD[:57] + struct.pack(">i", 3) + GOOD[61:]), INVALID_RECORD),
        (resealed(GOOD[:57] + struct.pack(">i", -1) + GOOD[61:]), INVALID_RECORD),
        (batch(b"a", attributes=record_batch.CONTROL), INVALID_RECORD),
        (batch(b"a", attributes=record_batch.LOG_APPEND_TIME), INVALID_TIMESTAMP),
        (batch(b"a", producer=(7, 0, -1)), INVALID_RECORD),
    ],
)
def test_others_are_refused(bad: bytes, code: int) -> None:
    with pytest.raises(KafkaRefusal) as caught:
        checked(bad)
    assert caught.value.code == code


@given(st.integers(0, 2**62), st.integers(0, 2**30))
def test_another_offset_is_written_without_a_new_checksum(offset: int, epoch: int) -> None:
    moved = b"".join(record_batch.with_offset(GOOD, 0, offset, epoch))
    header = checked(moved)
    assert (header.base_offset, header.leader_epoch) == (offset, epoch)
    assert moved[16:] == GOOD[16:]


@given(st.binary(max_size=120))
def test_arbitrary_bytes(data: bytes) -> None:
    with contextlib.suppress(KafkaRefusal, Corrupted):
        checked(data)


FIELDS = [(0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8)]
FIELDS += [(51, 2), (53, 4), (57, 4)]
changes = st.tuples(st.sampled_from(FIELDS), st.integers(-3, 40))


@given(
    st.sampled_from([GOOD, batch(b"a", producer=(7, 1, 40)), batch(b"x" * 40, b"y" * 40)]),
    st.none() | changes,
    st.booleans(),
    st.integers(0, 3),
)
def test_both_twins_find_the_same_sound(
    data: bytes, change: tuple[tuple[int, int], int] | None, seal: bool, cut: int
) -> None:
    if change is not None:
        (at, size), number = change
        number %= 1 << 8 * size
        data = data[:at] + number.to_bytes(size, "big") + data[at + size :]
    data = resealed(data) if seal else data
    for part in (data, data[: len(data) - cut], data[: 62 - cut], memoryview(data)):
        found = batches.py_sound(part)
        assert batches.sound(part) == found
        assert type(batches.sound(part)) is type(found)
