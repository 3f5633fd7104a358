"""Keys and values of the locations index, and the mark beside it."""

import pytest

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.format.locations import (
    LOST,
    decode_mark,
    encode_mark,
    ids_of,
    key,
    location_of,
    split,
    value,
)
from magnetar.core.kernel.errors import Corrupted


def test_keys_have_apaches_bytes_and_are_in_the_order_of_entries():
    assert key(1, 2) == bytes.fromhex("00000000000000010000000000000002")
    assert ids_of(key(1, 2)) == (1, 2)
    assert key(1, 255) < key(1, 256) < key(2, 0)
    assert location_of(value((7 << 32) | 1028)) == (7 << 32) | 1028


@pytest.mark.parametrize("location", [3, -1, LOST])
def test_impossible_locations_are_refused(location):
    assert split((7 << 32) | 1028) == (7, 1028)
    with pytest.raises(Corrupted):
        split(location)


def test_a_mark_comes_back_with_its_sequence_number():
    assert decode_mark(encode_mark(Mark(7, 512), 99)) == (Mark(7, 512), 99)
    with pytest.raises(ValueError, match="20 bytes"):
        decode_mark(encode_mark(Mark(7, 512), 99)[:20])


@pytest.mark.parametrize("at", range(28))
def test_a_flipped_bit_of_a_mark_is_noticed(at):
    data = bytearray(encode_mark(Mark(1, 512), 3))
    data[at] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        decode_mark(bytes(data))
