"""Converts Pulsar's messages and batches to records and back. Pure.

    u32 size | metadata | payload                     one message: the payload is its value
                          payload of a batch:         u32 size | about one | value, many times

The metadata, and the metadata of each message of a batch (`SingleMessageMetadata`), are protobuf
messages; only the fields that concern other protocols are read here.

Invariant: reading raises `Corrupted` and nothing else, and takes no more than in proportion to what
is read.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct as Layout
from typing import Any, Final

from magnetar.core.entry.pulsar import compression
from magnetar.core.entry.pulsar.properties import headers_of, properties_of
from magnetar.core.entry.record import NO_TIME, DetailedRecord, Header, Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint

METADATA: Final = b"pulsar.metadata"
"""The header that carries the metadata of an encrypted message."""
BATCH_MESSAGES_MAX: Final = 1 << 17
"""Messages of a batch that is read here. Compressed, 165 bytes may claim to be a million."""
_CHECKSUM: Final = b"\x0e\x01"
_SIZE: Final = Layout(">I")
_VARINT_BYTES_MAX: Final = 10
_MASK: Final = (1 << 64) - 1
_U32: Final = (1 << 32) - 1

Fields = dict[int, Any]
"""The last value of each field by its number; a list for a repeated field."""

_PRODUCER, _SEQUENCE_ID, _SCHEMA_VERSION = 1, 2, 16
_PUBLISH_TIME, _PROPERTIES, _KEY, _COMPRESSION, _SIZE_BEFORE, _COUNT = 3, 4, 6, 8, 9, 11
_EVENT_TIME, _ENCRYPTION_KEYS, _KEY_IS_BASE64, _ORDERING_KEY, _MARKER = 12, 13, 17, 18, 20
_TRANSACTION_LOW, _TRANSACTION_HIGH, _NULL_VALUE, _PART_OF, _NULL_KEY = 22, 23, 25, 26, 30
"""Fields of `MessageMetadata`."""
_ONE_PROPERTIES, _ONE_KEY, _ONE_SIZE, _ONE_GONE, _ONE_EVENT_TIME = 1, 2, 3, 4, 5
_ONE_KEY_IS_BASE64, _ONE_ORDERING_KEY, _ONE_SEQUENCE_ID = 6, 7, 8
_ONE_NULL_VALUE, _ONE_NULL_KEY = 9, 10
"""Fields of `SingleMessageMetadata`."""
_REMAINING_PLACES: Final = 31
"""Field of `MessageMetadata`: the places of messages that compaction has left of a batch."""
_NUMBERS: Final = frozenset(
    {
        *(_SEQUENCE_ID, _PUBLISH_TIME, _COMPRESSION, _SIZE_BEFORE, _COUNT, _EVENT_TIME),
        *(_KEY_IS_BASE64, _MARKER, _TRANSACTION_LOW, _TRANSACTION_HIGH, _NULL_VALUE, _NULL_KEY),
    }
)
_ONE_NUMBERS: Final = frozenset(
    {
        *(_ONE_SIZE, _ONE_GONE, _ONE_EVENT_TIME, _ONE_SEQUENCE_ID),
        *(_ONE_KEY_IS_BASE64, _ONE_NULL_VALUE, _ONE_NULL_KEY),
    }
)
"""The fields that are numbers; the others are bytes."""
_NOT_PLAIN: Final = frozenset(
    (_ENCRYPTION_KEYS, _MARKER, _TRANSACTION_LOW, _TRANSACTION_HIGH, _PART_OF)
)


# -- reading --------------------------------------------------------------------------------------


class PulsarMessage:
    """A message or a batch with parsed metadata and unparsed payload."""

    __slots__ = ("_fields", "metadata", "payload")

    def __init__(self, tail: bytes) -> None:
        at = 6 if tail.startswith(_CHECKSUM) else 0
        if len(tail) < at + 4:
            raise Corrupted("a message is cut short")
        end = at + 4 + _SIZE.unpack_from(tail, at)[0]
        if end > len(tail):
            raise Corrupted("the metadata of a message is longer than the message")
        self.metadata = tail[at + 4 : end]
        self._fields = _fields(self.metadata, 0, len(self.metadata), _PROPERTIES, _NUMBERS)
        if self._fields.get(_COUNT, 0) > BATCH_MESSAGES_MAX:
            raise Corrupted(f"a batch claims to have {self._fields[_COUNT]} messages")
        self.payload = tail[end:]
        """Replaced by the joined payload of a chunked message."""

    @property
    def is_marker(self) -> bool:
        """Whether it is a marker, which only brokers read."""
        return _MARKER in self._fields

    @property
    def is_plain(self) -> bool:
        """Whether it is no marker, not encrypted, and in no transaction or chunked message."""
        return _NOT_PLAIN.isdisjoint(self._fields)

    @property
    def is_whole(self) -> bool:
        """Whether its messages can be told apart: it is no chunk, and no encrypted batch."""
        fields = self._fields
        return _PART_OF not in fields and not (_ENCRYPTION_KEYS in fields and _COUNT in fields)

    @property
    def batch_count(self) -> int | None:
        """The number of messages that a batch claims; None of what is one, or encrypted."""
        fields = self._fields
        return None if _ENCRYPTION_KEYS in fields else fields.get(_COUNT)

    def own_key(self) -> tuple[bytes | None, int]:
        """The entry's partition key, and the size of its value, -1 for none."""
        fields, size = self._fields, len(self.payload)
        if fields.get(_COMPRESSION) and _ENCRYPTION_KEYS not in fields:
            # of 32 bits, and true or not nobody unpacks more
            size = min(fields.get(_SIZE_BEFORE, 0) & _U32, compression.SIZE_BYTES_MAX)
        return _partition_key_of(fields, _KEY), -1 if fields.get(_NULL_VALUE) else size

    def with_rest(self, payload: bytes, places: Iterable[int]) -> bytes:
        """The batch with that payload, of which the messages at these places are left."""
        metadata = _without_fields(
            self.metadata, frozenset((_COMPRESSION, _SIZE_BEFORE, _REMAINING_PLACES))
        )
        if self._fields.get(_COMPRESSION):
            metadata += b"\x40\x01\x48" + varint(len(payload))
            payload = compression.compress_lz4(payload)
        metadata += b"".join([_REMAINING_TAG + varint(place) for place in places])
        return b"".join((_SIZE.pack(len(metadata)), metadata, payload))

    def records(self) -> list[Record]:
        """Its messages in order, without those that were compacted away."""
        fields, time = self._fields, self._time
        hidden = ((METADATA, self.metadata),) if _ENCRYPTION_KEYS in fields else None
        return [
            Record(
                place,
                time,
                _key_of(fields, _KEY),
                value,
                hidden or _headers(fields.get(_PROPERTIES, ())),
            )
            if about is None
            else Record(
                place,
                about.get(_ONE_EVENT_TIME) or time,
                _key_of(about, _ONE_KEY),
                value,
                _headers(about.get(_ONE_PROPERTIES, ())),
            )
            for place, about, value in self._each()
        ]

    def messages(self) -> list[DetailedRecord]:
        """The same, with all that is known of each; of an encrypted one it is the metadata's."""
        fields = self._fields
        sent = fields.get(_PUBLISH_TIME) or NO_TIME
        event = fields.get(_EVENT_TIME) or NO_TIME
        producer, version = fields.get(_PRODUCER), fields.get(_SCHEMA_VERSION)
        first = fields.get(_SEQUENCE_ID)
        hidden = ((METADATA, self.metadata),) if _ENCRYPTION_KEYS in fields else ()
        return [
            DetailedRecord(
                place,
                sent,
                event,
                _partition_key_of(fields, _KEY),
                fields.get(_ORDERING_KEY),
                value,
                [*_headers(fields.get(_PROPERTIES, ())), *hidden],
                producer,
                first,
                version,
            )
            if about is None
            else DetailedRecord(
                place,
                sent,
                about.get(_ONE_EVENT_TIME) or event,
                _partition_key_of(about, _ONE_KEY),
                about.get(_ONE_ORDERING_KEY),
                value,
                _headers(about.get(_ONE_PROPERTIES, ())),
                producer,
                about.get(_ONE_SEQUENCE_ID, first),
                version,
            )
            for place, about, value in self._each()
        ]

    @property
    def _time(self) -> int:
        return self._fields.get(_EVENT_TIME) or self._fields.get(_PUBLISH_TIME) or NO_TIME

    def _each(self) -> Iterator[tuple[int, Fields | None, bytes | None]]:
        """The place of each message, its own metadata if it is one of a batch, and its value. What
        is encrypted is one message.
        """
        fields = self._fields
        if _ENCRYPTION_KEYS in fields:
            yield max(fields.get(_COUNT, 1), 1) - 1, None, self.payload
            return
        payload = self.plain_payload()
        if _COUNT in fields:
            yield from self._batch(payload)
        else:
            yield 0, None, None if fields.get(_NULL_VALUE) else payload

    def plain_payload(self) -> bytes:
        """The payload, decompressed."""
        codec, size = self._fields.get(_COMPRESSION, 0), self._fields.get(_SIZE_BEFORE, 0)
        return compression.decompress(self.payload, codec, size)

    def _batch(self, payload: bytes) -> Iterator[tuple[int, Fields, bytes | None]]:
        """The place, the metadata and the value of each message of a batch."""
        at = 0
        for place in range(self._fields[_COUNT]):
            _, end, about = _one_of_batch(payload, at)
            at = end + about.get(_ONE_SIZE, 0)
            if about.get(_ONE_GONE):
                continue
            yield place, about, None if about.get(_ONE_NULL_VALUE) else payload[end:at]


def message_of_batch(payload: bytes, at: int) -> tuple[int, bool, bytes | None, int]:
    """Where the message of a batch at `at` ends, whether it is marked as compacted out, its
    partition key, and the size of its value, -1 for none.
    """
    _, end, about = _one_of_batch(payload, at)
    size = about.get(_ONE_SIZE, 0)
    key = _partition_key_of(about, _ONE_KEY)
    value_size = -1 if about.get(_ONE_NULL_VALUE) else size
    return end + size, bool(about.get(_ONE_GONE)), key, value_size


def _one_of_batch(payload: bytes, at: int) -> tuple[int, int, Fields]:
    """Where the metadata of the message at `at` begin and end, and their fields."""
    if at + 4 > len(payload):
        raise Corrupted("a batch has fewer messages than it says")
    begin = at + 4
    end = begin + _SIZE.unpack_from(payload, at)[0]
    about = _fields(payload, begin, end, _ONE_PROPERTIES, _ONE_NUMBERS)
    if not begin <= end <= end + about.get(_ONE_SIZE, 0) <= len(payload):
        raise Corrupted("a message is longer than its batch")
    return begin, end, about


def remaining_places(tail: bytes) -> list[int]:
    """The places of the messages that compaction has left of a batch; none of what is whole."""
    if _REMAINING_TAG not in tail:
        return []
    try:
        metadata = PulsarMessage(tail).metadata
    except Corrupted:
        return []
    return [
        varint_at(metadata, begin + len(_REMAINING_TAG), end)[0]
        for number, begin, end in _each_field(metadata)
        if number == _REMAINING_PLACES
    ]


_REMAINING_TAG: Final = b"\xf8\x01"


def _without_fields(data: bytes, left_out: frozenset[int]) -> bytes:
    """A protobuf message without some of its fields."""
    return b"".join(
        [data[begin:end] for number, begin, end in _each_field(data) if number not in left_out]
    )


def _each_field(data: bytes) -> Iterator[tuple[int, int, int]]:
    """The number of each field of a protobuf message that was read before, and its place."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = varint_at(data, at, len(data))
        kind = tag & 7
        if kind == 0:
            _, at = varint_at(data, at, len(data))
        elif kind == 2:
            size, at = varint_at(data, at, len(data))
            at += size
        else:
            at += 8 if kind == 1 else 4
        yield tag >> 3, begin, at


def _key_of(fields: Fields, number: int) -> bytes | None:
    """The partition key as its producer set it; without one, the ordering key."""
    one = number == _ONE_KEY
    if number not in fields and not fields.get(_ONE_NULL_KEY if one else _NULL_KEY):
        return fields.get(_ONE_ORDERING_KEY if one else _ORDERING_KEY)
    return _partition_key_of(fields, number)


def _partition_key_of(fields: Fields, number: int) -> bytes | None:
    one = number == _ONE_KEY
    key: bytes | None = fields.get(number)
    if key is None or fields.get(_ONE_NULL_KEY if one else _NULL_KEY):
        return None
    if fields.get(_ONE_KEY_IS_BASE64 if one else _KEY_IS_BASE64):
        try:
            return binascii.a2b_base64(key)
        except binascii.Error:
            return key
    return key


def _headers(written: Sequence[bytes]) -> Sequence[Header]:
    if not written:
        return ()
    pairs = (_fields(pair, 0, len(pair), 0, frozenset()) for pair in written)
    return headers_of([(pair.get(1, b""), pair.get(2, b"")) for pair in pairs])


def _fields(data: bytes, at: int, end: int, repeated: int, numbers: frozenset[int]) -> Fields:
    """The fields of a protobuf message, without those of an unexpected wire type, which protobuf
    treats as unknown. Numbers are signed, as in Java.
    """
    found: Fields = {}
    if end > len(data):
        raise Corrupted("a field is longer than its message")
    while at < end:
        tag, at = varint_at(data, at, end)
        kind, number = tag & 7, tag >> 3
        if kind == 0:
            value, at = varint_at(data, at, end)
            if number in numbers:
                found[number] = value - (1 << 64) if value >> 63 else value
        elif kind == 2:
            size, at = varint_at(data, at, end)
            if at + size > end:
                raise Corrupted("a field is longer than its message")
            if number in numbers:
                pass
            elif number == repeated:
                found.setdefault(number, []).append(data[at : at + size])
            else:
                found[number] = data[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise Corrupted(f"a field has the unknown wire type {kind}")
    return found


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, of the 64 lowest bits, and where it ends."""
    if at >= end:
        raise Corrupted("a field is cut off")
    low = data[at]
    if low < 128:
        return low, at + 1
    value = shift = 0
    for byte in data[at : min(at + _VARINT_BYTES_MAX, end)]:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & _MASK, at + shift // 7
    raise Corrupted("a number in a message does not end")


# -- writing --------------------------------------------------------------------------------------


def batch_of(
    records: Sequence[Record], sequence_id: int, publish_time_ms: int, producer: str
) -> bytes:
    """A batch of these records, numbered without gaps.

    Its key is that of the first record, which decides for Key_Shared; without one, the sequence id.
    """
    payload = b"".join([_message(record) for record in records])
    # the time comes before the sequence id, which tells the entry from those of other forms
    name = producer.encode()
    about = [b"\x0a", varint(len(name)), name]
    about += b"\x18", varint(publish_time_ms), b"\x10", varint(sequence_id)
    if records and records[0].key is not None:
        about.append(_written_key(records[0].key, b"\x32", b"\x88\x01\x01"))
    if len(payload) > COMPRESSED_FROM_BYTES:
        about += b"\x40\x01\x48", varint(len(payload))
        payload = compression.compress_lz4(payload)
    about += b"\x58", varint(len(records))
    metadata = b"".join(about)
    return b"".join((_SIZE.pack(len(metadata)), metadata, payload))


COMPRESSED_FROM_BYTES: Final = 1024 * 1024
"""Larger batches are compressed: clients accept 5 MiB, and uncompressed records may exceed it."""


def _message(record: Record) -> bytes:
    """One message of a batch."""
    _, time, key, value, headers = record
    about = b""
    if headers:
        about = b"".join([_property(*each) for each in properties_of(headers)])
    if key is not None:
        about += _written_key(key, b"\x12", b"\x30\x01")
    about += b"\x18" + varint(len(value)) if value is not None else b"\x18\x00\x48\x01"
    if time > 0:
        about += b"\x28" + varint(time)
    return _SIZE.pack(len(about)) + about + (value or b"")


def _written_key(key: bytes, tag: bytes, is_base64: bytes) -> bytes:
    """The key as text if it is UTF-8, else in base64 with the flag for that."""
    try:
        key.decode()
    except UnicodeDecodeError:
        encoded = binascii.b2a_base64(key, newline=False)
        return tag + varint(len(encoded)) + encoded + is_base64
    return tag + varint(len(key)) + key


def _property(name: bytes, value: bytes) -> bytes:
    pair = b"\x0a" + varint(len(name)) + name + b"\x12" + varint(len(value)) + value
    return b"\x0a" + varint(len(pair)) + pair
