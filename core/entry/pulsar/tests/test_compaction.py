"""Pulsar's messages and batches as compaction sees them."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compaction import Item, Removal
from magnetar.core.entry.pulsar import messages
from magnetar.core.entry.pulsar.compaction import UnpackedMessages
from magnetar.core.entry.record import Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint
from magnetar.core.testing.entries import entry

RECORDS = st.lists(
    st.tuples(st.one_of(st.none(), st.binary(max_size=9)), st.one_of(st.none(), st.binary())),
    min_size=1,
    max_size=6,
)


def batch(records: list[tuple[bytes | None, bytes | None]], *, checked: bool = True) -> bytes:
    """With a checksum if it is to be."""
    made = [
        Record(place, 5, key, value, ((b"a", b"1"), (b"b", b"2")))
        for place, (key, value) in enumerate(records)
    ]
    body = messages.batch_of(made, 3, 4, "kafka")
    return b"\x0e\x01" + struct.pack(">I", crc32c(body)) + body if checked else body


@given(RECORDS, st.booleans())
def test_what_is_in_it(records: list[tuple[bytes | None, bytes | None]], checked: bool) -> None:
    taken = UnpackedMessages(batch(records, checked=checked))
    assert taken.is_decided
    assert taken.items == [
        Item(place, key, -1 if value is None else len(value))
        for place, (key, value) in enumerate(records)
    ]


def test_a_message_goes_as_a_whole() -> None:
    taken = UnpackedMessages(entry(b"value", key=b"k"))
    assert taken.items == [Item(0, b"k", 5)]
    taken.without(Removal((0,)))
    with pytest.raises(AssertionError, match="as a whole"):
        taken.without(Removal(()))


NUMBER, BYTES = 0, 2


def with_field(number: int, kind: int) -> bytes:
    """A message whose metadata has one more field."""
    metadata = b"\x0a\x01p\x10\x00\x18\x01" + varint(number << 3 | kind) + b"\x00"
    return struct.pack(">I", len(metadata)) + metadata + b"v"


@pytest.mark.parametrize(
    ("number", "kind"), [(13, BYTES), (20, NUMBER), (22, NUMBER), (23, NUMBER), (26, BYTES)]
)
def test_what_is_left_alone(number: int, kind: int) -> None:
    assert not UnpackedMessages(with_field(number, kind)).is_decided
    assert UnpackedMessages(with_field(40, kind)).is_decided
    other = NUMBER if kind == BYTES else BYTES
    assert UnpackedMessages(with_field(number, other)).is_decided, "another field, of nobody's"


@given(st.data())
def test_damage(data: st.DataObject) -> None:
    whole = batch([(b"key", b"value"), (b"k", None)])
    at = data.draw(st.integers(0, len(whole) - 1))
    for spoiled in (whole[:at], whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + 1 :]):
        with suppress(Corrupted):
            UnpackedMessages(spoiled)
