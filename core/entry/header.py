"""The broker's header, which is stored before the bytes of each entry's producer (PIP-70). Pure.

This module defines it, and reads headers of all brokers; `stamps.py` makes ours, and reads them.

    0x0e02 | u32 size | BrokerEntryMetadata | what the producer sent (from 0x0e01 on)

BrokerEntryMetadata is a protobuf message: 1 broker_timestamp (ms), 2 index, and our own 15 count,
which is present only if the entry has more than one message; other readers skip unknown fields.

Invariant: `index` is that of the LAST message of the entry (`AppendIndexMetadataInterceptor.java`
of Pulsar 4.2), so the difference to the entry before is the count. Entries that other brokers
stored without a header are read as one message without index; a damaged header is `Corrupted`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from magnetar.core.entry import stamps
from magnetar.core.entry.stamps import COUNT, INDEX, MAGIC, PREFIX_BYTES, TIMESTAMP
from magnetar.core.entry.stamps import EntryHeader as EntryHeader
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.native import quickest

headers: Final = quickest(stamps.headers, "magnetar.core.entry.compiled")
_plain: Final = quickest(stamps.plain, "magnetar.core.entry.compiled")
NO_INDEX: Final = -1
_SIZE = struct.Struct(">I")

NONE: Final = EntryHeader(0, 0, NO_INDEX, 1)
"""The header of an entry without one."""


def read(entry: bytes) -> EntryHeader:
    """The header of a stored entry; `NONE` if it has none."""
    return _plain(entry) or _read_slowly(entry)


def counts_of(entries: Sequence[bytes]) -> list[int] | None:
    """The counts of consecutive entries of one ledger; None if all hold one message.

    Indexes are consecutive too, so the first and the last entry show whether all counts are one.
    """
    first = read(entries[0])
    last = read(entries[-1]) if len(entries) > 1 else first
    if first.index >= 0 and first.count == 1 and last.index - first.index == len(entries) - 1:
        return None
    counts = [read(entry).count for entry in entries]
    return counts if any(count != 1 for count in counts) else None


def _read_slowly(entry: bytes) -> EntryHeader:
    """Read a header with fields in any order, and unknown fields."""
    if entry[:2] != MAGIC:
        return NONE
    if len(entry) < PREFIX_BYTES:
        raise Corrupted("an entry ends within its header")
    end = PREFIX_BYTES + _SIZE.unpack_from(entry, 2)[0]
    if end > len(entry):
        raise Corrupted("the header of an entry is longer than the entry")
    metadata = entry[PREFIX_BYTES:end]
    fields = {TIMESTAMP: 0, INDEX: NO_INDEX, COUNT: 1}
    at = 0
    while at < len(metadata):
        tag, at = _read_varint(metadata, at)
        if tag & 7 == 0:
            value, at = _read_varint(metadata, at)
            if tag in fields:
                fields[tag] = value
        else:
            at = _skip(metadata, at, tag & 7)
    return EntryHeader(end, fields[TIMESTAMP], fields[INDEX], max(fields[COUNT], 1))


def _skip(data: bytes, at: int, wire_type: int) -> int:
    """Skip an unknown field: 64 bits, bytes, or 32 bits."""
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
