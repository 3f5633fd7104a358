"""Data types (1.5 of MQTT 5.0): what is written is read, and bad bytes are malformed packets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.codec import fields
from magnetar.wire.mqtt.codec.fields import FieldReader, text_of, varint_at
from magnetar.wire.mqtt.errors import MalformedPacket


def reader(data: bytes) -> FieldReader:
    return FieldReader(data, 0, len(data))


@given(st.integers(0, fields.VARINT_MAX))
def test_variable_byte_integers(number: int) -> None:
    written = fields.varint(number)
    assert varint_at(written, 0, len(written)) == (number, len(written))
    assert reader(written).varint() == number
    assert varint_at(written[:-1], 0, len(written) - 1) == (0, 0), "not whole yet"


@pytest.mark.parametrize("number", [0, 127, 128, 16_383, 16_384, 2_097_151])
def test_they_take_the_shortest_form(number: int) -> None:
    """[MQTT-1.5.5-1]"""
    written = fields.varint(number)
    longer = written[:-1] + bytes((written[-1] | 128, 0))
    with pytest.raises(MalformedPacket, match="longer"):
        varint_at(longer, 0, len(longer))


def test_they_have_four_bytes_at_most() -> None:
    for data in (b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x01"):
        with pytest.raises(MalformedPacket, match="four bytes"):
            varint_at(data, 0, len(data))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_strings(text: str) -> None:
    assert reader(fields.string(text)).string() == text


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\0b", b"\xf4\x90\x80\x80"]
)
def test_what_is_no_string(data: bytes) -> None:
    """Surrogates, overlong forms, U+0000 [MQTT-1.5.4-1], [MQTT-1.5.4-2]."""
    with pytest.raises(MalformedPacket):
        text_of(data)


def test_a_byte_order_mark_is_a_character() -> None:
    """[MQTT-1.5.4-3]"""
    assert text_of(b"\xef\xbb\xbfa") == "\ufeffa"


def test_numbers_and_bytes() -> None:
    read = reader(b"\x07" + fields.u16(500) + fields.u32(70_000) + fields.binary(b"xy") + b"rest")
    assert (read.byte(), read.u16(), read.u32(), read.binary()) == (7, 500, 70_000, b"xy")
    assert read.left == 4
    part = read.part(2)
    assert part.rest() == b"re"
    with pytest.raises(MalformedPacket, match="2 bytes behind"):
        read.end()
    assert read.rest() == b"st"
    read.end()


@pytest.mark.parametrize(
    "method", ["byte", "u16", "u32", "varint", "binary", "string", "packet_id"]
)
@pytest.mark.parametrize("data", [b"", b"\0"])
def test_a_packet_that_ends_within_a_field(method: str, data: bytes) -> None:
    if (method, data) in {("byte", b"\0"), ("varint", b"\0")}:
        return
    with pytest.raises(MalformedPacket, match="within a field"):
        getattr(reader(data), method)()


def test_no_packet_identifier_is_zero() -> None:
    """[MQTT-2.2.1-3]"""
    assert reader(b"\0\x01").packet_id() == 1
    with pytest.raises(MalformedPacket, match="zero"):
        reader(b"\0\0").packet_id()
