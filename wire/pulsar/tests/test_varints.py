"""Variable-length integers, against protobuf's own."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.varints import stretches, varint, varint_end
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.varints import all_varints

NUMBERS = st.one_of(st.integers(0, 40_000), st.integers(0, (1 << 63) - 1))


@given(st.integers(0, (1 << 64) - 1))
def test_varints_are_protobufs(number):
    command = pb.BrokerEntryMetadata(index=number).SerializeToString()
    assert b"\x10" + varint(number) == command


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
