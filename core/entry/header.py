"""The header the broker puts before what a producer sent, when an entry is stored. Pure.

This page says what it is, and reads it; `stamps` makes it.

    0x0e02 | u32 size | BrokerEntryMetadata | what the producer sent (from 0x0e01 on)

BrokerEntryMetadata is a protobuf message: 1 broker_timestamp (ms), 2 index, and our own 15 count,
present only when the entry holds more than one message; other readers skip what they do not know.

Invariant: `index` is that of the LAST message of the entry, so the index of one entry minus that of
the one before is its count. Entries that other brokers stored without a header are read as one
message without index; a header that is cut short or makes no sense is `Corrupted`.

Why this is written by hand: it runs once per message, and 128 neighbours share all of their header
but the low seven bits of their index.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from core.entry import stamps
from core.entry.stamps import MAGIC
from core.errors import Corrupted
from core.native import quickest

headers = quickest(stamps.headers, "core.entry.compiled")
NO_INDEX: Final = -1

_TIMESTAMP: Final = 0x08
_INDEX: Final = 0x10
_COUNT: Final = 0x78
_PREFIX_BYTES: Final = 6
"""Magic and size."""
_SHARED = struct.Struct(">2sIB6sB")
"""Up to the index, in the years 1971 to 2109, when a timestamp takes six bytes."""
_SHARED_BYTES: Final = _SHARED.size
_SIZE = struct.Struct(">I")


class Header(Struct, frozen=True):
    """What the broker noted about one entry."""

    size: int
    """Bytes of the header: what the producer sent begins here. 0 if there is none."""
    timestamp_ms: int
    index: int
    """Of the entry's last message; -1 if unknown."""
    count: int

    @property
    def first_index(self) -> int:
        """Of the entry's first message."""
        return self.index - self.count + 1


NONE: Final = Header(0, 0, NO_INDEX, 1)
"""Stored by a broker that writes no header."""


def read(entry: bytes) -> Header:
    """The header of a stored entry; `NONE` if it has none."""
    shared = _shared_part(entry[:_SHARED_BYTES])
    if shared is not None:
        end, timestamp_ms = shared
        if _SHARED_BYTES < end <= len(entry):
            low = entry[_SHARED_BYTES]
            rest = _index_and_count(entry[_SHARED_BYTES + 1 : end])
            if low >= 0x80 and rest is not None:
                return Header(end, timestamp_ms, low & 0x7F | rest[0] << 7, rest[1])
    return _read_slowly(entry)


def counts_of(entries: Sequence[bytes]) -> list[int] | None:
    """Messages in each of consecutive entries of one ledger; None when all hold one.

    Since indexes are consecutive too, the first and the last entry tell whether all counts are one.
    """
    first = read(entries[0])
    last = read(entries[-1]) if len(entries) > 1 else first
    if first.index >= 0 and first.count == 1 and last.index - first.index == len(entries) - 1:
        return None
    counts = [read(entry).count for entry in entries]
    return counts if any(count != 1 for count in counts) else None


# what neighbours have in common is read once and remembered
@lru_cache(256)
def _shared_part(head: bytes) -> tuple[int, int] | None:
    """Where the header ends, and its timestamp; None for another layout than ours."""
    if len(head) < _SHARED_BYTES:
        return None
    magic, size, first_tag, time, second_tag = _SHARED.unpack(head)
    if (magic, first_tag, second_tag) != (MAGIC, _TIMESTAMP, _INDEX):
        return None
    if time[5] >= 0x80:
        return None
    timestamp_ms, used = _read_varint(time, 0)
    return (_PREFIX_BYTES + size, timestamp_ms) if used == len(time) else None


@lru_cache(256)
def _index_and_count(tail: bytes) -> tuple[int, int] | None:
    """High bits of the index, and the count: what 128 neighbours share. None for another layout."""
    try:
        high, at = _read_varint(tail, 0)
        if at == len(tail):
            return high, 1
        if tail[at] == _COUNT:
            count, at = _read_varint(tail, at + 1)
            if at == len(tail) and count > 0:
                return high, count
    except Corrupted:
        pass
    return None


def _read_slowly(entry: bytes) -> Header:
    """Any protobuf message, with fields in any order and fields we do not know."""
    if entry[:2] != MAGIC:
        return NONE
    if len(entry) < _PREFIX_BYTES:
        raise Corrupted("an entry ends within its header")
    end = _PREFIX_BYTES + _SIZE.unpack_from(entry, 2)[0]
    if end > len(entry):
        raise Corrupted("the header of an entry is longer than the entry")
    metadata = entry[_PREFIX_BYTES:end]
    fields = {_TIMESTAMP: 0, _INDEX: NO_INDEX, _COUNT: 1}
    at = 0
    while at < len(metadata):
        tag, at = _read_varint(metadata, at)
        if tag & 7 == 0:
            value, at = _read_varint(metadata, at)
            if tag in fields:
                fields[tag] = value
        else:
            at = _skip(metadata, at, tag & 7)
    return Header(end, fields[_TIMESTAMP], fields[_INDEX], max(fields[_COUNT], 1))


def _skip(data: bytes, at: int, wire_type: int) -> int:
    """Step over a field of a later version: 64 bits, bytes, or 32 bits."""
    if wire_type == 2:
        size, at = _read_varint(data, at)
        at += size
    elif wire_type in (1, 5):
        at += 8 if wire_type == 1 else 4
    else:
        raise Corrupted(f"the header of an entry has a field of unknown wire type {wire_type}")
    if at > len(data):
        raise Corrupted("a field of an entry's header is longer than the header")
    return at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at + shift // 7
    raise Corrupted("a number in the header of an entry does not end")
