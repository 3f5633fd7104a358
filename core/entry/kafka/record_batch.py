"""Kafka's record batch: its header, and the records in it. Pure.

    off  size                                  off  size
      0     8  base offset    ours to set       27     8  first timestamp, ms
      8     4  bytes behind this field          35     8  last timestamp, ms
     12     4  leader epoch   ours to set       43     8  producer id, -1 for none
     16     1  magic, 2                         51     2  producer epoch
     17     4  CRC32C of what follows           53     4  first sequence number, -1 for none
     21     2  attributes                       57     4  records
     23     4  last offset - base offset        61        records, together compressed

Attributes: 0-2 codec, 3 timestamps are the server's, 4 part of a transaction, 5 control. A record:

    size | attributes, 0 | timestamp - first | offset - base | key | value | headers: count, (name,
    value)...        each number a zigzag varint, each string behind its size, -1 for none

Invariant: reading raises `Corrupted` and nothing else, and takes memory in proportion to its input.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.entry.kafka import compression
from magnetar.core.entry.record import NO_TIME, Header, Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import varint

SIZED_BYTES: Final = 12
"""The bytes that the size field does not count."""
CHECKED_AT: Final = 21
HEADER_BYTES: Final = 61
MAGIC: Final = 2
VARINT_BYTES_MAX: Final = 10
PLACE_MAX: Final = (1 << 31) - 1
_TIME_MAX: Final = (1 << 63) - 1

CODEC: Final = 7
LOG_APPEND_TIME: Final = 8
TRANSACTIONAL: Final = 16
CONTROL: Final = 32

_HEADER: Final = Layout(">qiibIhiqqqhii").unpack_from
_SIZE: Final = Layout(">i").unpack_from
_HEAD: Final = Layout(">qii").pack
_HEAD_BYTES: Final = 16
_WHOLE_HEAD: Final = Layout(">qiibI").pack
_BODY: Final = Layout(">hiqqqhii").pack
_ATTRIBUTES: Final = Layout(">h").pack_into
_TIME: Final = Layout(">q").pack_into
_LAST_TIME_AT: Final = 35
_NOBODY: Final = (-1, -1, -1)


class BatchHeader(NamedTuple):
    """The fields of the header in order."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_delta: int
    first_timestamp: int
    last_timestamp: int
    producer_id: int
    producer_epoch: int
    first_sequence: int
    records: int


def header_of(batch: bytes | memoryview) -> BatchHeader:
    """The header of a batch."""
    try:
        return BatchHeader._make(_HEADER(batch))
    except struct.error as error:
        raise Corrupted("a batch is cut short") from error


def with_offset(
    entry: bytes, at: int, base_offset: int, leader_epoch: int = 0
) -> tuple[bytes, memoryview]:
    """The batch at `at` with another base offset, as two pieces; the larger is not copied."""
    (size,) = _SIZE(entry, at + 8)
    return _HEAD(base_offset, size, leader_epoch), memoryview(entry)[at + _HEAD_BYTES :]


def stamped(batch: bytes | memoryview, now_ms: int) -> bytes:
    """The batch with the broker's time for all records (`LogAppendTime`)."""
    header = header_of(batch)
    body = bytearray(memoryview(batch)[CHECKED_AT:])
    _ATTRIBUTES(body, 0, header.attributes | LOG_APPEND_TIME)
    _TIME(body, _LAST_TIME_AT - CHECKED_AT, now_ms)
    return _headed(body)


def dated(batch: bytes | memoryview, last_ms: int) -> tuple[bytes, BatchHeader]:
    """The batch with another last timestamp, and its header."""
    header = header_of(batch)
    body = bytearray(memoryview(batch)[CHECKED_AT:])
    _TIME(body, _LAST_TIME_AT - CHECKED_AT, last_ms)
    made = _headed(body, header.base_offset, header.leader_epoch)
    return made, header_of(made)


def recompressed(batch: bytes | memoryview, codec: int) -> bytes:
    """The batch with its records compressed by that codec."""
    whole, header = bytes(batch), header_of(batch)
    attributes = header.attributes
    records = compression.decompress_records(whole[HEADER_BYTES:], attributes & CODEC)
    body = bytearray(whole[CHECKED_AT:HEADER_BYTES])
    _ATTRIBUTES(body, 0, attributes & ~CODEC | codec)
    body += compression.compress_records(records, codec)
    return _headed(body, header.base_offset)


# -- the ends of transactions ---------------------------------------------------------------------

_MARKER: Final = Layout(">hh").pack
_MARKER_KIND: Final = Layout(">h").unpack_from
_MARKED_BY: Final = Layout(">hi").pack
_COMMIT: Final = 1


def marker(writer: int, epoch: int, now_ms: int, *, committed: bool) -> bytes:
    """The control batch that ends a transaction."""
    record = Record(0, now_ms, _MARKER(0, _COMMIT if committed else 0), _MARKED_BY(0, 0))
    who = (writer, epoch, -1)
    return _written([record], 0, 1, TRANSACTIONAL | CONTROL, who)


def is_commit(batch: bytes) -> bool:
    """Whether a control batch commits its transaction; else it aborts it."""
    records = records_of(batch)
    key = records[0].key if records else None
    if key is None or len(key) < 4:
        raise Corrupted("a control batch does not say what it is")
    return bool(_MARKER_KIND(key, 2)[0] == _COMMIT)


# -- reading --------------------------------------------------------------------------------------


def records_of(batch: bytes) -> list[Record]:
    """The records of a batch in order."""
    header = header_of(batch)
    data, codec = batch[HEADER_BYTES:], header.attributes & CODEC
    if codec:
        data = compression.decompress_records(data, codec)
    base = header.first_timestamp
    fixed = header.last_timestamp if header.attributes & LOG_APPEND_TIME else None
    try:
        return _records(data, header.records, base, fixed)
    except IndexError as error:
        raise Corrupted("the records of a batch end too soon") from error


def _records(data: bytes, count: int, base: int, fixed: int | None) -> list[Record]:
    found = []
    at = 0
    for _ in range(count):
        size, at = number_at(data, at)
        end = at + size
        if size < 0 or end > len(data):
            raise Corrupted("a record is longer than its batch")
        delta, at = number_at(data, at + 1)
        place, at = number_at(data, at)
        if not 0 <= place <= PLACE_MAX:
            raise Corrupted(f"a record claims to be number {place} of its batch")
        key, at = string_at(data, at, end)
        value, at = string_at(data, at, end)
        headers: Sequence[Header] = ()
        if data[at]:
            headers, at = _headers(data, at, end)
        else:
            at += 1
        if at != end:
            raise Corrupted("a record does not end where it says")
        time = base + delta if fixed is None else fixed
        found.append(
            Record(place, time if 0 <= time <= _TIME_MAX else NO_TIME, key, value, headers)
        )
    return found


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of a record and the offset after it; raises `IndexError` past the end."""
    low = data[at]
    if low < 128:
        return (low >> 1) ^ -(low & 1), at + 1
    value, shift = 0, 0
    for byte in data[at : at + VARINT_BYTES_MAX]:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at + shift // 7
    raise Corrupted("a number in a record does not end")


def string_at(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """A string of a record that ends at `end`, and the offset after it."""
    size, at = number_at(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise Corrupted("a string is longer than its record")
    return data[at : at + size], at + size


def _headers(data: bytes, at: int, end: int) -> tuple[list[Header], int]:
    count, at = number_at(data, at)
    if not 0 <= count <= end - at:  # each header has at least two bytes
        raise Corrupted("a record cannot have so many headers")
    headers: list[Header] = []
    for _ in range(count):
        name, at = string_at(data, at, end)
        value, at = string_at(data, at, end)
        if name is None:
            raise Corrupted("a header has no name")
        headers.append((name, value))
    return headers, at


# -- writing --------------------------------------------------------------------------------------


def batch_of(records: Sequence[Record], base_offset: int, offsets: int) -> bytes:
    """A batch without a producer id, of that many offsets and perhaps fewer records."""
    return _written(records, base_offset, offsets, 0, _NOBODY)


def joined(header: BatchHeader, packed: bytes) -> bytes:
    """A batch of encoded records, with the header's size and checksum computed."""
    body = _BODY(*header[5:]) + packed  # from the attributes on
    return _headed(body, header.base_offset, header.leader_epoch)


def _headed(body: bytes | bytearray, base_offset: int = 0, leader_epoch: int = 0) -> bytes:
    """The batch: the fields before the checksummed bytes, and these."""
    size = CHECKED_AT - SIZED_BYTES + len(body)
    return _WHOLE_HEAD(base_offset, size, leader_epoch, MAGIC, crc32c(body)) + body


def _written(
    records: Sequence[Record],
    base_offset: int,
    offsets: int,
    attributes: int,
    who: tuple[int, int, int],
) -> bytes:
    times = [record.timestamp_ms for record in records if record.timestamp_ms >= 0]
    base = times[0] if times else NO_TIME
    pieces = [_packed(record, base) for record in records]
    latest = max(times, default=base)
    head = _BODY(attributes, offsets - 1, base, latest, *who, len(records))
    return _headed(b"".join((head, *pieces)), base_offset)


def _packed(record: Record, base: int) -> bytes:
    _, time, key, value, headers = record
    inside = b"".join(
        (
            b"\0",
            zigzag(time - base if time >= 0 else 0),
            zigzag(record.place),
            _sized(key),
            _sized(value),
            zigzag(len(headers)),
            *[_sized(part) for header in headers for part in header],
        )
    )
    return zigzag(len(inside)) + inside


def zigzag(number: int) -> bytes:
    """The zigzag varint of a number."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else zigzag(len(data)) + data
