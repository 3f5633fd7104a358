"""Variable-length integers, against protobuf's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.varints import stretches, varint
from wire.pulsar import commands_pb2 as pb
from wire.pulsar.varints import all_varints, number_at, varint_end

NUMBERS = st.one_of(st.integers(0, 40_000), st.integers(0, (1 << 63) - 1))


@given(st.integers(0, (1 << 64) - 1))
def test_varints_are_protobufs(number):
    command = pb.BrokerEntryMetadata(index=number).SerializeToString()
    assert b"\x10" + varint(number) == command


@given(NUMBERS, st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_found_again(number, before, behind):
    data = before + varint(number) + behind
    end = varint_end(data, len(before), len(data))
    assert data[len(before) : end] == varint(number)
    assert number_at(data, len(before), end) == number


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff", b"\x80" * 9 + b"\x01"])
def test_what_is_cut_short_or_too_long_has_no_end(data):
    assert varint_end(data, 0, len(data)) == 0


@given(st.lists(st.binary(min_size=2, max_size=2), min_size=1, max_size=8))
def test_many_at_once(pieces):
    one_by_one = all(varint_end(piece, 0, 2) == 2 for piece in pieces)
    assert all_varints(pieces, 2) == one_by_one


def test_ten_bytes_are_left_to_protobuf():
    assert not all_varints([varint((1 << 64) - 1)], 10)


@given(NUMBERS, st.integers(0, 500))
def test_stretches(first, count):
    made = [one + rest for firsts, rest in stretches(first, count) for one in firsts]
    assert made == [varint(number) for number in range(first, first + count)]
