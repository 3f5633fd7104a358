"""Whether what stands behind the header of a batch is what the header says. Pure.

Consumers take a batch apart only when they read it, and the checksum vouches for what a producer
sent, not for its sense: one record that lies, and Kafka's clients stop at its offset for ever. So
all are walked through before they are stored, as Kafka's broker does (`LogValidator`,
`DefaultRecord.readFrom` of 4.3). Beyond that the offsets inside have to count from 0: Kafka mends
or stores those that do not, and clients read some of such records twice, or never.

Invariant: what is in order here is read by `record_batch.records_of`. `spread` and `bad` have
compiled twins: a batch may have a hundred thousand records of which the last is bad, so only the
bad ones are looked at one by one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.core.native import quickest

INT_BYTES_MAX: Final = 5
LONG_BYTES_MAX: Final = 10
_INT_TOP: Final = 15
_LONG_TOP: Final = 1
"""What the last of so many bytes may hold."""


class RecordFinding(NamedTuple):
    """One record: what the rules of a topic ask of it, and what is wrong with it."""

    time_delta: int
    has_key: bool
    fault: str = ""


class _Lies(Exception):
    """Why a record cannot be taken apart."""


def py_spread(
    batch: bytes | bytearray | memoryview, at: int, count: int, keyed: bool
) -> tuple[int, int] | None:
    """How much the earliest and the latest time differ from the first, if the records from `at` on
    are so many, in order, and have keys if they must; None if `bad` has something to say.
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
    """Records of which there is something to say, if their times may differ so much from the first:
    their places, where they begin and where they end. And how many records there are before it
    leaves open where the next begins. The search ends after so many bad ones.
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
    """One record, without its size."""
    try:
        time_delta, at = _number(record, 1, LONG_BYTES_MAX, _LONG_TOP)
        delta, at = _int(record, at)
        has_key = not record[at] & 1
        if _behind(record, at, len(record)) != len(record):
            raise _Lies("it does not end where it says")
        if delta != place:
            raise _Lies(f"it says that it is number {delta}")
    except _Lies as lies:
        return RecordFinding(0, has_key=False, fault=str(lies))
    except IndexError:
        return RecordFinding(0, has_key=False, fault="it ends too soon")
    return RecordFinding(time_delta, has_key)


def _behind(data: bytes, at: int, end: int) -> int:
    """What is behind the key, the value and the headers of a record that ends there."""
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
    """A zigzag number, and what is behind it."""
    value = 0
    for place in range(bytes_max):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            if place == bytes_max - 1 and byte > top:
                break
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise _Lies("a number in it does not end")
