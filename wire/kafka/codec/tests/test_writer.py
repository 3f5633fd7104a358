"""Varints and tagged fields as they go out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.kafka.codec import reader, writer


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (2**32 - 1, b"\xff\xff\xff\xff\x0f")],
)
def test_a_varint(number, data):
    assert writer.varint(number) == data


@given(st.integers(0, 2**32 - 1))
def test_what_is_written_is_read(number):
    data = writer.varint(number)
    assert reader.varint(data, 0) == (number, len(data))


def test_tagged_fields_carry_their_number_and_size():
    assert writer.tags([(0, [b"ab", b"c"]), (129, [])]) == b"\x02\x00\x03abc\x81\x01\x00"
