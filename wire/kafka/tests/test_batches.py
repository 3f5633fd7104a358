"""Which batches are taken, and what changes in one on its way out."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.checksum import crc32c
from wire.kafka import batches
from wire.kafka.batches import BadBatch
from wire.kafka.errors import CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP
from wire.kafka.tests.batch import batch


def checked(data: bytes) -> batches.Header:
    header = batches.header_of(data)
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
        (batch(b"a", attributes=batches.CONTROL), INVALID_RECORD),
        (batch(b"a", attributes=batches.LOG_APPEND_TIME), INVALID_TIMESTAMP),
        (batch(b"a", producer=(7, 0, -1)), INVALID_RECORD),
    ],
)
def test_others_are_refused(bad: bytes, code: int) -> None:
    with pytest.raises(BadBatch) as caught:
        checked(bad)
    assert caught.value.code == code


@given(st.integers(0, 2**62), st.integers(0, 2**30))
def test_another_offset_is_written_without_a_new_checksum(offset: int, epoch: int) -> None:
    moved = b"".join(batches.with_offset(GOOD, offset, epoch))
    header = checked(moved)
    assert (header.base_offset, header.leader_epoch) == (offset, epoch)
    assert moved[16:] == GOOD[16:]


@given(st.binary(max_size=120))
def test_arbitrary_bytes(data: bytes) -> None:
    with contextlib.suppress(BadBatch, struct.error):
        checked(data)
