"""Varints against the definition; `wire/pulsar/tests/test_varints.py` holds them to protobuf."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.varints import number_at, stretches, varint, varint_end

NUMBERS = st.one_of(st.integers(0, 40_000), st.integers(0, (1 << 63) - 1))


def read(data: bytes) -> int:
    assert all(byte & 128 for byte in data[:-1])
    assert data[-1] < 128
    return sum((byte & 127) << 7 * place for place, byte in enumerate(data))


@given(st.integers(0, (1 << 64) - 1))
def test_a_number_comes_back_from_its_shortest_form(number: int) -> None:
    data = varint(number)
    assert read(data) == number
    assert len(data) == max(1, -(-number.bit_length() // 7))


@given(st.integers(0, 40_000), st.integers(0, 600))
def test_stretches_are_the_numbers_in_order(first: int, count: int) -> None:
    made = [begin + rest for begins, rest in stretches(first, count) for begin in begins]
    assert made == [varint(number) for number in range(first, first + count)]


@given(NUMBERS, st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_found_again(number: int, before: bytes, behind: bytes) -> None:
    data = before + varint(number) + behind
    end = varint_end(data, len(before), len(data))
    assert data[len(before) : end] == varint(number)
    assert number_at(data, len(before), end) == number


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff", b"\x80" * 9 + b"\x01"])
def test_what_is_cut_short_or_too_long_has_no_end(data: bytes) -> None:
    assert varint_end(data, 0, len(data)) == 0
