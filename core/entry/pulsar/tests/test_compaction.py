"""Pulsar's messages and batches as compaction sees them."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.compaction import Item, Removal
from magnetar.core.entry.pulsar import form, messages, metadata
from magnetar.core.entry.pulsar.compaction import KeyedMessages, UnpackedMessages
from magnetar.core.entry.pulsar.compression import SIZE_BYTES_MAX
from magnetar.core.entry.pulsar.messages import PulsarMessage
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


# -- for a compacted ledger -----------------------------------------------------------------------


@given(RECORDS, st.booleans(), st.data())
def test_some_messages_of_a_batch(
    records: list[tuple[bytes | None, bytes | None]], checked: bool, data: st.DataObject
) -> None:
    """They keep their places, and all that their producer wrote; again and again."""
    whole = batch(records, checked=checked)
    before = {one.place: one for one in PulsarMessage(whole).records()}
    taken = KeyedMessages(whole)
    assert taken.is_decided
    assert taken.items == [
        Item(place, key, -1 if value is None else len(value))
        for place, (key, value) in enumerate(records)
    ]
    left, sent = set(before), whole
    while left:
        lost = data.draw(st.sets(st.sampled_from(sorted(left)), min_size=1))
        left -= lost
        found = KeyedMessages(sent).without(Removal(lost))
        assert (found is None) == (not left)
        if found is not None:
            sent = found
            assert PulsarMessage(sent).records() == [before[place] for place in sorted(left)]
            assert form.remaining_places(sent) == sorted(left)
            assert metadata.message_count(sent) == (len(records), True)
            assert metadata.publish_time(sent) == metadata.publish_time(whole)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_is_compressed(codec: int) -> None:
    plain = PulsarMessage(batch([(b"a", b"1" * 99), (b"b", b"2" * 99), (b"a", b"3")]))
    packed = {
        1: cramjam.lz4.compress_block(plain.payload, store_size=False),
        2: zlib.compress(plain.payload),
        3: cramjam.zstd.compress(plain.payload),
        4: cramjam.snappy.compress_raw(plain.payload),
    }[codec]
    about = plain.metadata + b"\x40%c\x48" % codec + varint(len(plain.payload))
    sent = struct.pack(">I", len(about)) + about + bytes(packed)
    left = KeyedMessages(sent).without(Removal((0,)))
    assert left is not None
    assert PulsarMessage(left).records() == PulsarMessage(sent).records()[1:]
    assert len(left) < len(plain.metadata) + len(plain.payload)


@pytest.mark.parametrize(
    ("more", "item"),
    [
        (b"", Item(0, b"k", 5)),
        (b"\xc8\x01\x01", Item(0, b"k", -1)),  # the value is null
        (b"\x40\x01\x48\x07", Item(0, b"k", 7)),  # compressed, from seven bytes
        (b"\x40\x01\x48\xff\xff\xff\xff\x0f", Item(0, b"k", SIZE_BYTES_MAX)),  # so it claims
        (b"\x6a\x00\x40\x01\x48\x07", Item(0, b"k", 5)),  # encrypted after that
        (b"\xb0\x01\x05\xb8\x01\x06", Item(0, b"k", 5)),  # of a transaction
    ],
)
def test_one_message_has_one_key(more: bytes, item: Item) -> None:
    sent = entry(b"value", key=b"k")[6:]
    size = int.from_bytes(sent[:4], "big")
    taken = KeyedMessages(
        struct.pack(">I", size + len(more)) + sent[4 : 4 + size] + more + b"value"
    )
    assert taken.is_decided
    assert taken.items == [item]
    assert taken.without(Removal((0,))) is None


def test_only_the_partition_key_counts() -> None:
    sent = with_field(18, BYTES)
    assert UnpackedMessages(sent).items[0].key == b""
    assert KeyedMessages(sent).items[0].key is None


def test_what_cannot_be_told_apart() -> None:
    chunk = KeyedMessages(entry(b"value", key=b"k", chunk=(b"u", 0, 2)))
    assert (chunk.is_decided, chunk.items) == (False, [Item(0, b"k", 5)])
    body = batch([(b"a", b"1"), (b"b", b"2")], checked=False)
    size = int.from_bytes(body[:4], "big")
    locked = struct.pack(">I", size + 2) + body[4 : 4 + size] + b"\x6a\x00" + body[4 + size :]
    assert not KeyedMessages(locked).is_decided


@given(st.data())
def test_damage_of_what_is_keyed(data: st.DataObject) -> None:
    whole = batch([(b"key", b"value"), (b"k", None)])
    at = data.draw(st.integers(0, len(whole) - 1))
    for spoiled in (whole[:at], whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + 1 :]):
        form.remaining_places(spoiled)
        with suppress(Corrupted):
            taken = KeyedMessages(spoiled)
            if len(taken.items) > 1:
                taken.without(Removal((taken.items[0].place,)))
