"""The few fields of Pulsar's message metadata that the broker itself acts on. Pure.

    [0x0e02 | u32 size | broker's note] [0x0e01 | u32 checksum] u32 size | metadata | payload

Metadata is a protobuf message. Nothing here decodes all of it: a field is looked for when a policy
needs it (keys, delays, chunks, seek by time), which for most topics is never. `wire/pulsar` has the
whole message.

Invariant: these functions are total. Clients write the metadata, and it is not checked when it is
stored, so damage must not stop a dispatcher: fields behind it count as absent.

Tags are held as bytes too, because most calls ask for absent fields: a search for two bytes shows
that. (Overlong encodings of a tag are valid protobuf, but no encoder writes them.)
"""

from __future__ import annotations

import binascii
import struct
from typing import Final, NamedTuple

from magnetar.core.entry.form import Chunk
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.varints import varint

_BROKER_PART: Final = b"\x0e\x02"
_CHECKSUM_PART: Final = b"\x0e\x01"
_SIZE = struct.Struct(">I")

_NUMBER: Final = 0
_BYTES: Final = 2
VARINT_BYTES_MAX: Final = 10
"""Bytes of a varint of 64 bits. Unlimited, decoding takes time quadratic in its length."""
FIELDS_MAX: Final = 10_000
"""Fields of one message that are searched, properties included."""
_UNSIGNED: Final = 0xFFFF_FFFF_FFFF_FFFF
_SMALL_BYTES_MAX: Final = 4096
"""Up to this size, searching the whole entry is cheaper than locating its metadata."""


class _Tag(NamedTuple):
    """The tag of a field: its number and wire type, also as encoded bytes."""

    number: int
    written: bytes


def _tag(field: int, kind: int) -> _Tag:
    number = field << 3 | kind
    low, high = number & 127, number >> 7
    return _Tag(number, bytes((low | 128, high)) if high else bytes((low,)))


_PRODUCER_NAME: Final = _tag(1, _BYTES)
_SEQUENCE_ID: Final = _tag(2, _NUMBER)
_PUBLISH_TIME: Final = _tag(3, _NUMBER)
_PARTITION_KEY: Final = _tag(6, _BYTES)
_MESSAGES_IN_BATCH: Final = _tag(11, _NUMBER)
_EVENT_TIME: Final = _tag(12, _NUMBER)
_ENCRYPTION_KEYS: Final = _tag(13, _BYTES)
_PARTITION_KEY_IS_BASE64: Final = _tag(17, _NUMBER)
_ORDERING_KEY: Final = _tag(18, _BYTES)
_DELIVER_AT_TIME: Final = _tag(19, _NUMBER)
_MARKER_TYPE: Final = _tag(20, _NUMBER)
_TXN_LEAST_BITS: Final = _tag(22, _NUMBER)
_TXN_MOST_BITS: Final = _tag(23, _NUMBER)
_HIGHEST_SEQUENCE_ID: Final = _tag(24, _NUMBER)
_UUID: Final = _tag(26, _BYTES)
_CHUNK_COUNT: Final = _tag(27, _NUMBER)
_CHUNK_ID: Final = _tag(29, _NUMBER)


def sticky_key(tail: bytes) -> bytes | None:
    """The key by which Key_Shared chooses the consumer; None only if the metadata is damaged.

    The ordering key, else the partition key as its producer gave it, else the producer's name and
    the sequence id, which spreads messages without a key (`StickyKeyConsumerSelectorUtils.java`).
    Of a batch only the first key counts.
    """
    data = _metadata(tail)
    ordering = _bytes(data, _ORDERING_KEY)
    if ordering is not None:
        return ordering
    key = _bytes(data, _PARTITION_KEY)
    if key is not None:
        return _from_base64(key) if _number(data, _PARTITION_KEY_IS_BASE64) else key
    name, sequence_id = _bytes(data, _PRODUCER_NAME), _number(data, _SEQUENCE_ID)
    if name is None or sequence_id is None:
        return None
    return name + b"-%d" % sequence_id


def partition_key(tail: bytes) -> bytes | None:
    """The partition key as it is encoded, which compaction uses; None for none."""
    return _bytes(_metadata(tail), _PARTITION_KEY)


def publish_time(tail: bytes) -> int:
    """The publish time in milliseconds; 0 if unknown."""
    return _number(_metadata(tail), _PUBLISH_TIME) or 0


def event_time(tail: bytes) -> int:
    """The event time in milliseconds; 0 if unknown."""
    return _number(_metadata(tail), _EVENT_TIME) or 0


def deliver_at_time(tail: bytes) -> int | None:
    """The time in milliseconds before which it is not delivered; None for at once."""
    if len(tail) <= _SMALL_BYTES_MAX and _DELIVER_AT_TIME.written not in tail:
        return None
    return _number(_metadata(tail), _DELIVER_AT_TIME)


def message_count(tail: bytes) -> tuple[int, bool]:
    """The number of its messages, and whether it is a batch, which may hold a single one."""
    count = _number(_metadata(tail), _MESSAGES_IN_BATCH)
    return (1, False) if count is None else (max(count, 1), True)


def chunk(tail: bytes) -> Chunk | None:
    """Its chunk of a large message (PIP-37); None for a whole one."""
    if len(tail) <= _SMALL_BYTES_MAX and _UUID.written not in tail:
        return None
    data = _metadata(tail)
    uuid, chunk_id = _bytes(data, _UUID), _number(data, _CHUNK_ID)
    count = _number(data, _CHUNK_COUNT)
    if uuid is None or chunk_id is None or count is None:
        return None
    return Chunk(uuid, chunk_id, count)


def sequence(tail: bytes) -> tuple[bytes, int] | None:
    """The producer's name and the highest sequence id, which of a batch is its last message's."""
    data = _metadata(tail)
    name, sequence_id = _bytes(data, _PRODUCER_NAME), _number(data, _SEQUENCE_ID)
    if name is None or sequence_id is None:
        return None
    return name, max(sequence_id, _number(data, _HIGHEST_SEQUENCE_ID) or 0)


def marker_type(tail: bytes) -> int | None:
    """The type of a marker, which only brokers read; None for a message."""
    return _number(_metadata(tail), _MARKER_TYPE)


def transaction(tail: bytes) -> tuple[int, int] | None:
    """The transaction that it is a part of, or ends: both halves of its id; None for none."""
    if len(tail) <= _SMALL_BYTES_MAX and _TXN_MOST_BITS.written not in tail:
        return None
    data = _metadata(tail)
    most, least = _number(data, _TXN_MOST_BITS), _number(data, _TXN_LEAST_BITS)
    if most is None or least is None:
        return None
    return most & _UNSIGNED, least & _UNSIGNED


def with_transaction(sent: bytes, most: int, least: int) -> bytes:
    """A message whose metadata states the transaction, too. Go's client (0.19) states it in SEND
    only. Apache's broker looks at the metadata alone, and delivers its messages after an abort.
    """
    at = 6 if sent.startswith(_CHECKSUM_PART) else 0
    end = at + 4 + _SIZE.unpack_from(sent, at)[0]
    added = b"".join((_TXN_LEAST_BITS.written, varint(least), _TXN_MOST_BITS.written, varint(most)))
    size = _SIZE.pack(end - at - 4 + len(added))
    body = b"".join((size, sent[at + 4 : end], added, sent[end:]))
    return _CHECKSUM_PART + _SIZE.pack(crc32c(body)) + body


def has_encryption_keys(tail: bytes) -> bool:
    """Whether its producer encrypted it."""
    return _bytes(_metadata(tail), _ENCRYPTION_KEYS) is not None


def _metadata(tail: bytes) -> bytes:
    at = 0
    if tail.startswith(_BROKER_PART) and len(tail) >= 6:
        at = 6 + _SIZE.unpack_from(tail, 2)[0]
    if tail.startswith(_CHECKSUM_PART, at):
        at += 6
    if len(tail) < at + 4:
        return b""
    return tail[at + 4 : at + 4 + _SIZE.unpack_from(tail, at)[0]]


def _from_base64(key: bytes) -> bytes:
    try:
        return binascii.a2b_base64(key)
    except binascii.Error:
        return key


def _number(data: bytes, tag: _Tag) -> int | None:
    """A field's value, signed as in Java; None if it is absent."""
    at = _find(data, tag)
    if at < 0:
        return None
    number = shift = 0
    for byte in data[at : at + VARINT_BYTES_MAX]:
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    else:
        return None
    number &= _UNSIGNED
    return number - (1 << 64) if number >> 63 else number


def _bytes(data: bytes, tag: _Tag) -> bytes | None:
    at = _find(data, tag)
    if at < 0:
        return None
    size, at = _size(data, at)
    return data[at : at + size]


def _find(data: bytes, tag: _Tag) -> int:
    """The offset of a field's value; -1 if it is absent. The last one counts."""
    number, written = tag
    if written not in data:
        return -1
    at, found = 0, -1
    end = len(data)
    try:
        for _ in range(FIELDS_MAX):
            if at >= end:
                break
            seen = data[at]
            at += 1
            if seen > 127:
                seen, at = _size(data, at - 1)
            start = at
            kind = seen & 7
            if kind == _NUMBER:
                at = at + 1 if data[at] < 128 else _behind_number(data, at)
            elif kind == _BYTES:
                at += data[at] + 1 if data[at] < 128 else sum(_size(data, at)) - at
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            else:
                return found
            if seen == number and at <= end:
                found = start
    except IndexError:  # damaged
        pass
    return found


def _behind_number(data: bytes, at: int) -> int:
    limit = at + VARINT_BYTES_MAX
    while data[at] > 127 and at < limit:
        at += 1
    if at == limit:
        raise IndexError("a number without an end")
    return at + 1


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A size or a long tag, and the offset after it."""
    number = shift = 0
    for byte in data[at : at + VARINT_BYTES_MAX]:
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise IndexError("a number without an end")
