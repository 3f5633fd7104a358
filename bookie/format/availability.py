"""A set of entry ids as Apache encodes it in the answer to `ListEntries`. Pure.

A header of 64 bytes, and groups of 24 (`AvailabilityOfEntriesOfLedger.java` of BookKeeper 4.18,
`SequenceGroup`); all integers are big-endian:

    header  i32 version 0 | i32 number of groups | zeros
    group   i64 start of the first sequence | i64 start of the last one | i32 entries of each
            | i32 distance of their starts, 0 for one sequence

With striping a bookie has, for example, two of each three entries: a group says that in 24 bytes.

Invariant: `decode(encode(ids))` is `ids`, sorted and each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from magnetar.core.kernel.errors import Corrupted, Invalid

HEADER_BYTES: Final = 64
VERSION: Final = 0
SIZE_MAX: Final = 2**31 - 1

_head = Struct(">ii")
_group = Struct(">qqii")


def encode(ids: Iterable[int], bytes_max: int = SIZE_MAX) -> bytes:
    """Encode ids in ascending order; `Invalid` if that takes more bytes."""
    data = bytearray(HEADER_BYTES)
    for group in _groups(ids):
        data += _group.pack(*group)
        if len(data) > bytes_max:
            raise Invalid(f"a list of so many gaps takes more than {bytes_max} bytes")
    _head.pack_into(data, 0, VERSION, (len(data) - HEADER_BYTES) // _group.size)
    return bytes(data)


def _groups(ids: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
    """Gather sequences of the same size at the same distance."""
    first = last = size = period = -1
    for start, count in _sequences(ids):
        distance = start - last
        if first >= 0 and count == size and distance <= SIZE_MAX and period in (0, distance):
            last, period = start, distance
            continue
        if first >= 0:
            yield first, last, size, period
        first, last, size, period = start, start, count, 0
    if first >= 0:
        yield first, last, size, period


def _sequences(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first id, number of ids) of each gapless sequence."""
    start = count = 0
    for entry_id in ids:
        if count and entry_id == start + count and count < SIZE_MAX:
            count += 1
            continue
        if count:
            yield start, count
        start, count = entry_id, 1
    if count:
        yield start, count


def decode(data: bytes) -> list[int]:
    """The ids; `Corrupted` if this is no such set."""
    if len(data) < HEADER_BYTES:
        raise Corrupted(f"a list of entries has {len(data)} bytes")
    version, count = _head.unpack_from(data)
    if version != VERSION or len(data) != HEADER_BYTES + count * _group.size:
        raise Corrupted("a list of entries makes no sense")
    ids: list[int] = []
    for place in range(count):
        first, last, size, period = _group.unpack_from(data, HEADER_BYTES + place * _group.size)
        for start in range(first, last + 1, period or 1):
            ids += range(start, start + size)
    return ids
