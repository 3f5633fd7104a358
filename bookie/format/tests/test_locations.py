"""Keys and values of the locations index, and the mark beside it."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import locations
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


def test_rows_have_the_keys_and_values_of_a_run():
    offsets = array("I", [0, 40, 90])
    assert locations.rows(7, 3, offsets, 1 << 32 | 1028, 1, 2) == [
        (locations.key(7, 4), locations.value(1 << 32 | 1068))
    ]


@given(
    st.integers(0, 2**62), st.integers(0, 2**62), st.lists(st.integers(0, 2**32 - 1), max_size=9),
    st.integers(0, 2**62), st.integers(0, 9), st.integers(0, 9),
)  # fmt: skip
def test_rows_alike(ledger_id, first, offsets, location, start, stop):
    compiled = pytest.importorskip(
        "magnetar.bookie.format.compiled", reason="built where there is a C compiler"
    )
    start, stop = min(start, len(offsets)), min(stop, len(offsets))
    arguments = ledger_id, first, array("I", offsets), location, start, stop
    assert compiled.rows(*arguments) == locations.rows(*arguments)


def test_rows_that_do_not_exist_are_refused():
    compiled = pytest.importorskip(
        "magnetar.bookie.format.compiled", reason="built where there is a C compiler"
    )
    with pytest.raises(IndexError):
        compiled.rows(1, 0, array("I", [0]), 0, 0, 2)
    with pytest.raises(OverflowError):
        compiled.rows(1, 2**63 - 1, array("I", [0, 1]), 0, 0, 2)
