"""Varints and tagged fields as they come in."""

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.codec import reader


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\x80\x01", 128),
        (b"\xff\xff\xff\xff\x0f", 2**32 - 1),
        (b"\x81\x80\x80\x80\x00", 1),
    ],
)
def test_a_varint_and_what_is_behind_it(data, number):
    assert reader.varint(b"?" + data + b"?", 1) == (number, 1 + len(data))


def test_a_varint_that_does_not_end():
    with pytest.raises(WireError, match="more than 5 bytes"):
        reader.varint(b"\x80" * 5 + b"\x01", 0)


def test_a_tagged_field():
    assert reader.tag(b"\x07\x02ab", 0) == (7, 2, 4)


def test_a_tagged_field_that_ends_behind_the_message():
    with pytest.raises(WireError):
        reader.tag(b"\x07\x03ab", 0)


def test_tagged_fields_are_skipped():
    assert reader.skip_tags(b"\x02\x07\x02ab\x81\x01\x00?", 0) == 8
