"""Validation of the records behind the header of a batch. Pure.

The checksum proves that a batch arrived as sent, but not that its records are well-formed. One
malformed record stops Kafka's consumers at its offset for ever. So every record is parsed before it
is stored, as in Kafka's broker (`LogValidator`, `DefaultRecord.readFrom` of 4.3). We are stricter
in one point: the offset deltas have to count from 0. Kafka rewrites or stores others, and clients
then read some records twice or never.

Invariant: `record_batch.records_of` can read records without a fault here. `spread` and `bad` have
compiled twins: a batch may have a hundred thousand records of which the last is bad, so only the
bad ones are described one by one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.core.native import quickest

INT_BYTES_MAX: Final = 5
LONG_BYTES_MAX: Final = 10
_INT_TOP: Final = 15
_LONG_TOP: Final = 1
"""The highest last byte of a varint of full length; a higher one overflows 32 or 64 bits."""


class RecordFinding(NamedTuple):
    """The properties of a record that the rules of a topic concern, and its fault."""

    time_delta: int
    has_key: bool
    fault: str = ""


class _Lies(Exception):
    """A record is malformed; the text says how."""


def py_spread(
    batch: bytes | bytearray | memoryview, at: int, count: int, keyed: bool
) -> tuple[int, int] | None:
    """The lowest and the highest timestamp delta of `count` records from `at` on; None if a record
    is malformed, out of order, or lacks a key that it needs.
    """
    data = bytes(batch)
    low, high = 0, 0
    try:
        for place in range(count):
            size, at = _int(data, at)
            end = at + size
            if size < 1 or end > len(data):
                return None
            delta, at = _number(data, at + 1, LONG_BYTES_MAX, _LONG_TOP)
            low, high = (min(low, delta), max(high, delta)) if place else (delta, delta)
            number, at = _int(data, at)
            if number != place or (keyed and data[at] & 1) or _behind(data, at, end) != end:
                return None
            at = end
    except (_Lies, IndexError):
        return None
    return (low, high) if at == len(data) else None


spread = quickest(py_spread, "magnetar.wire.kafka.compiled")


def py_bad(
    batch: bytes | bytearray | memoryview,
    at: int,
    count: int,
    keyed: bool,
    times: tuple[int, int],
    most: int,
) -> tuple[list[tuple[int, int, int]], int]:
    """The bad records, each with its index, its start and its end; and the number of records up to
    the first one whose end is unknown. A record is bad if it has a fault, if it lacks a key that it
    needs, or if its timestamp delta is outside `times`. The search ends after `most` bad records.
    """
    data = bytes(batch)
    found: list[tuple[int, int, int]] = []
    for place in range(count):
        if len(found) == most:
            return found, count
        try:
            size, at = _int(data, at)
        except (_Lies, IndexError):
            return found, place
        end = at + size
        if size < 0 or end > len(data):
            return found, place
        one = described(data[at:end], place)
        if one.fault or (keyed and not one.has_key) or not times[0] <= one.time_delta <= times[1]:
            found.append((place, at, end))
        at = end
    return found, count


bad = quickest(py_bad, "magnetar.wire.kafka.compiled")


def described(record: bytes, place: int) -> RecordFinding:
    """Describe one record, without its length prefix."""
    try:
        time_delta, at = _number(record, 1, LONG_BYTES_MAX, _LONG_TOP)
        delta, at = _int(record, at)
        has_key = not record[at] & 1
        if _behind(record, at, len(record)) != len(record):
            raise _Lies("its length differs from its fields")
        if delta != place:
            raise _Lies(f"its offset delta is {delta}")
    except _Lies as lies:
        return RecordFinding(0, has_key=False, fault=str(lies))
    except IndexError:
        return RecordFinding(0, has_key=False, fault="it ends too soon")
    return RecordFinding(time_delta, has_key)


def _behind(data: bytes, at: int, end: int) -> int:
    """The position behind key, value and headers of a record that ends at `end`."""
    for _ in range(2):
        size, at = _int(data, at)
        if size > 0:
            at += size
    count, at = _int(data, at)
    if not 0 <= count <= end - at:
        raise _Lies(f"it cannot have {count} headers")
    for _ in range(count):
        size, at = _int(data, at)
        if size < 0:
            raise _Lies("a header has no name")
        size, at = _int(data, at + size)
        if size > 0:
            at += size
    return at


def _int(data: bytes, at: int) -> tuple[int, int]:
    low = data[at]
    if low < 128:
        return (low >> 1) ^ -(low & 1), at + 1
    return _number(data, at, INT_BYTES_MAX, _INT_TOP)


def _number(data: bytes, at: int, bytes_max: int, top: int) -> tuple[int, int]:
    """A zigzag varint, and the position behind it."""
    value = 0
    for place in range(bytes_max):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            if place == bytes_max - 1 and byte > top:
                break
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise _Lies("a number in it does not end")
