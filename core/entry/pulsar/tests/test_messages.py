"""Messages of Pulsar's producers as records, and records as messages."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.pulsar import messages, metadata
from magnetar.core.entry.pulsar.messages import METADATA, PulsarMessage
from magnetar.core.entry.record import NO_TIME, Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint
from magnetar.core.testing.entries import entry

maybe = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=9).map(str.encode), maybe), max_size=3)
contents = st.lists(
    st.tuples(st.integers(1, 2**45), maybe, maybe, headers.map(tuple)), min_size=1, max_size=9
)


@given(contents)
def test_what_goes_in_comes_out(content: list[tuple]) -> None:
    records = [Record(place, *each) for place, each in enumerate(content)]
    tail = messages.batch_of(records, 4, 5, "kafka")
    assert metadata.message_count(tail) == (len(records), True)
    found = [
        record._replace(headers=tuple(record.headers)) for record in PulsarMessage(tail).records()
    ]
    assert found == records


@pytest.mark.parametrize("key", [b"text", b"", b"\xff\xfe"])
def test_a_batch_goes_by_its_first_key(key: bytes) -> None:
    records = [Record(0, 1, key, b"a"), Record(1, 1, b"other", b"b")]
    assert metadata.sticky_key(messages.batch_of(records, 4, 5, "kafka")) == key
    without = [Record(0, 1, None, b"a")]
    assert metadata.sticky_key(messages.batch_of(without, 4, 5, "kafka")) == b"kafka-4"


def test_large_batches_are_compressed() -> None:
    records = [Record(place, 1, None, b"x" * 1000) for place in range(2000)]
    tail = messages.batch_of(records, 4, 5, "kafka")
    assert len(tail) < 100_000
    assert PulsarMessage(tail).records() == records


def test_holes_are_closed() -> None:
    records = [Record(3, 1, None, b"a"), Record(9, 1, None, b"b")]
    found = PulsarMessage(messages.batch_of(records, 4, 5, "kafka")).records()
    assert [(record.place, record.value) for record in found] == [(0, b"a"), (1, b"b")]


def message(*fields: tuple[int, int | bytes], payload: bytes = b"") -> bytes:
    """A message with such metadata."""
    metadata = b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )
    return struct.pack(">I", len(metadata)) + metadata + payload


def test_one_message() -> None:
    (found,) = PulsarMessage(entry(b"value", key=b"key", published_ms=77)).records()
    assert found == Record(0, 77, b"key", b"value")


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ([], None),
        ([(6, b"text")], b"text"),
        ([(6, b"")], b""),
        ([(6, b"/w=="), (17, 1)], b"\xff"),
        ([(6, b"abc"), (17, 1)], b"abc"),
        ([(18, b"order")], b"order"),
        ([(6, b"text"), (18, b"order")], b"text"),
        ([(6, b""), (30, 1)], None),
    ],
)
def test_keys(fields: list[tuple[int, bytes | int]], key: bytes | None) -> None:
    (found,) = PulsarMessage(message(*fields)).records()
    assert found.key == key


@pytest.mark.parametrize(
    ("fields", "time"),
    [([], NO_TIME), ([(3, 5)], 5), ([(3, 5), (12, 9)], 9), ([(3, 5), (12, 0)], 5)],
)
def test_times(fields: list[tuple[int, int]], time: int) -> None:
    (found,) = PulsarMessage(message(*fields)).records()
    assert found.timestamp_ms == time


def test_nothing_is_not_empty() -> None:
    assert PulsarMessage(message()).records()[0].value == b""
    assert PulsarMessage(message((25, 1))).records()[0].value is None


def test_compressed() -> None:
    payload = zlib.compress(b"hello" * 9)
    (found,) = PulsarMessage(message((8, 2), (9, 45), payload=payload)).records()
    assert found.value == b"hello" * 9


def test_a_batch_with_a_message_compacted_away() -> None:
    gone, there = b"\x18\x00\x20\x01", b"\x18\x02"
    payload = b"\0\0\0\x04" + gone + b"\0\0\0\x02" + there + b"hi"
    (found,) = PulsarMessage(message((11, 2), payload=payload)).records()
    assert (found.place, found.value) == (1, b"hi")


def test_what_was_encrypted_stays_so() -> None:
    tail = message((13, b"\x0a\x01k"), (11, 3), payload=b"secret")
    (found,) = PulsarMessage(tail).records()
    assert (found.place, found.value) == (2, b"secret")
    ((name, metadata),) = found.headers
    assert name == METADATA
    assert metadata is not None
    assert metadata in tail


def test_markers() -> None:
    assert PulsarMessage(message((20, 21))).is_marker
    assert not PulsarMessage(message()).is_marker


@pytest.mark.parametrize("field", [(13, b""), (20, 21), (22, 0), (23, 0), (26, b"")])
def test_what_is_not_plain(field: tuple[int, int | bytes]) -> None:
    assert not PulsarMessage(message(field)).is_plain
    assert PulsarMessage(message((40, 1))).is_plain


@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    for tail in (data, message((11, 5), payload=data), message((4, data)), message((6, data))):
        try:
            PulsarMessage(tail).records()
        except Corrupted:
            continue


@given(
    st.lists(
        st.tuples(
            st.integers(1, 31),
            st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.binary(max_size=9),
        )
    ),
    st.binary(max_size=50),
)
def test_fields_of_any_kind(fields: list[tuple[int, bytes | int]], payload: bytes) -> None:
    for tail in (message(*fields, payload=payload), message((11, 1), *fields, payload=payload)):
        try:
            PulsarMessage(tail).records()
        except Corrupted:
            continue


@pytest.mark.parametrize(
    "tail",
    [
        b"\0\0",
        b"\0\0\0\x05abc",
        message((11, 2), payload=b"\0\0\0\x02\x18\x00"),
        message((11, 1), payload=b"\xff\xff\xff\xff"),
        message((11, 1), payload=b"\0\0\0\x03\x18\xff\x01"),
        b"\0\0\0\x02\x0a\x05",
        b"\0\0\0\x01\x07",
        b"\0\0\0\x0b\x18" + b"\xff" * 10,
    ],
)
def test_damage(tail: bytes) -> None:
    with pytest.raises(Corrupted):
        PulsarMessage(tail).records()


def test_a_batch_cannot_claim_millions_of_messages() -> None:
    """Zeros are empty messages of four bytes, and compressed they are next to nothing."""
    most = messages.BATCH_MESSAGES_MAX
    for count, fits in ((most, True), (most + 1, False)):
        payload = zlib.compress(bytes(4 * count))
        tail = message((8, 2), (9, 4 * count), (11, count), payload=payload)
        assert len(tail) < 1_000
        if fits:
            assert PulsarMessage(tail).batch_count == count
        else:
            with pytest.raises(Corrupted, match="claims"):
                PulsarMessage(tail)
