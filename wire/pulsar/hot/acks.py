"""Hand-written decoding of ACK and FLOW, the frequent commands of consumers.

Grouped acks are mostly long sequences of consecutive entry ids, all of one size. These are not
decoded: the bytes of consecutive ids are generated and compared. Ids of one size in any other order
are decoded as a table, column by column.

Invariant: `ranges` holds exactly the ids of the command (as a set), as protobuf would read them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.core.kernel.varints import number_at, stretches, varint_end
from magnetar.wire.pulsar.events import Acks, Flow
from magnetar.wire.pulsar.frames import SIZES
from magnetar.wire.pulsar.hot.sends import FrameLimits
from magnetar.wire.pulsar.varints import MORE_FOLLOWS

ACK_HEAD: Final = b"\x08\x0a\x52"  # type ACK, field ack
FLOW_HEAD: Final = b"\x08\x0b\x5a"
ID_TAG: Final = 0x1A  # field message_id
REQUEST_ID_TAG: Final = 0x40
PERMIT_BYTES_MAX: Final = 4
"""Bytes of permits, which have 32 bits; protobuf decodes longer ones."""
Ranges = list[tuple[int, int, int]]

CONSECUTIVE_IDS_MIN: Final = 64
"""Ids with gaps closer than this are read as a table."""


class _Head(NamedTuple):
    """A regular ACK up to its message ids."""

    consumer_id: int
    cumulative: bool
    ids_at: int
    end: int


def parse_acks(data: bytes, offset: int, limits: FrameLimits) -> tuple[int, Acks | None]:
    """The ACK at `offset`, joined with following ones that differ only in their one entry id."""
    head = read_head(data, offset, limits.frame_bytes_max)
    if head is None:
        return offset, None
    consumer_id, cumulative, ids_at, end = head
    ranges: Ranges = []
    at = _take_ids(data, ids_at, end, ranges, 1 if cumulative else end)
    request_id = None
    if at < end and data[at] == REQUEST_ID_TAG:
        start, at = at + 1, varint_end(data, at + 1, end)
        request_id = number_at(data, start, at) if at else None
    if at != end:
        return offset, None
    acks = Acks(consumer_id, cumulative, ranges, [], request_id)
    if request_id is None and not cumulative and ids_at < end == ids_at + 2 + data[ids_at + 1]:
        end = _take_single_acks(data, offset, ids_at, end, ranges)
    return end, acks


def read_head(data: bytes, offset: int, frame_bytes_max: int) -> _Head | None:
    size_of_data = len(data)
    if size_of_data < offset + 16 or data[offset + 8 : offset + 11] != ACK_HEAD:
        return None
    size, command_bytes = SIZES.unpack_from(data, offset)
    end = offset + 4 + size
    if end > size_of_data or size > frame_bytes_max or size != command_bytes + 4:
        return None
    at = varint_end(data, offset + 11, end)
    if not at or number_at(data, offset + 11, at) != end - at or end < at + 4 or data[at] != 0x08:
        return None
    consumer_at = at + 1
    at = varint_end(data, consumer_at, end)
    if not at or end < at + 2 or data[at] != 0x10 or data[at + 1] > 1:
        return None
    return _Head(number_at(data, consumer_at, at), data[at + 1] == 1, at + 2, end)


def _take_ids(data: bytes, at: int, end: int, ranges: Ranges, limit: int) -> int:
    """Take message ids that have only ledger and entry; returns the offset after them."""
    while at < end - 5 and data[at] == ID_TAG and data[at + 2] == 0x08 and len(ranges) < limit:
        behind = at + data[at + 1] + 2
        ledger_end = varint_end(data, at + 3, end)
        if behind > end or not ledger_end or ledger_end + 1 >= behind or data[ledger_end] != 0x10:
            break
        entry_at = ledger_end + 1
        if varint_end(data, entry_at, end) != behind:
            break
        ledger, entry = number_at(data, at + 3, ledger_end), number_at(data, entry_at, behind)
        if limit == 1 or not data.startswith(data[at:entry_at], behind):
            join(ranges, ledger, entry, entry)
            at = behind
        else:
            at = _take_alike_ids(data, (at, entry_at, behind), end, ledger, entry, ranges)
    return at


def _take_alike_ids(
    data: bytes, first: tuple[int, int, int], end: int, ledger: int, entry: int, ranges: Ranges
) -> int:
    """Take the ids with the size and ledger of the first; returns the offset after them."""
    at, _, behind = first
    stride = behind - at
    limit = (end - at) // stride
    alike = _count_consecutive(data, first, entry, limit)
    if alike >= min(limit, CONSECUTIVE_IDS_MIN):
        join(ranges, ledger, entry, entry + alike - 1)
        return at + alike * stride
    entries = _entries_alike(data, first, limit)
    entries.sort()
    begin = last = entries[0]
    for number in entries:
        if number > last + 1:
            join(ranges, ledger, begin, last)
            begin = number
        last = number
    join(ranges, ledger, begin, last)
    return at + len(entries) * stride


def _entries_alike(data: bytes, first: tuple[int, int, int], limit: int) -> list[int]:
    """The entry ids of all ids that follow with the same size and ledger, in any order.

    Ids of one size are a table, and each constant of it a column: all rows are checked, and
    decoded, a column at a time.
    """
    at, entry_at, behind = first
    stride = behind - at
    count = limit
    for place in range(at, entry_at):
        column = data[place : at + count * stride : stride]
        count = len(column) - len(column.lstrip(data[place : place + 1]))
    columns = []
    for place in range(entry_at, behind):
        column = data[place : at + count * stride : stride]
        more = column.translate(MORE_FOLLOWS)
        count = len(more) - len(more.lstrip(b"\x00" if place == behind - 1 else b"\x01"))
        columns.append(column)
    entries = list(columns.pop()[:count])
    while columns:
        entries = [high << 7 | low & 127 for high, low in zip(entries, columns.pop(), strict=False)]
    return entries


def _count_consecutive(data: bytes, first: tuple[int, int, int], entry: int, limit: int) -> int:
    """The number of ids of consecutive entries, beginning with `entry`.

    The bytes of up to 128 consecutive ids are generated at once, and compared.
    """
    at, entry_at, behind = first
    prefix = data[at:entry_at]
    stride = behind - at
    taken = 0
    for firsts, rest in stretches(entry, limit):
        if len(rest) + 1 + len(prefix) != stride:
            break
        count = len(firsts)
        expected = prefix + (rest + prefix).join(firsts) + rest
        start = at + taken * stride
        if data.startswith(expected, start):
            taken += count
            continue
        same, different = 0, count
        while different - same > 1:
            middle = (same + different) // 2
            if data.startswith(expected[: middle * stride], start):
                same = middle
            else:
                different = middle
        return taken + same
    return taken


def join(ranges: Ranges, ledger: int, first: int, last: int) -> None:
    if ranges and ranges[-1][0] == ledger and ranges[-1][2] == first - 1:
        ranges[-1] = (ledger, ranges[-1][1], last)
    else:
        ranges.append((ledger, first, last))


def _take_single_acks(data: bytes, offset: int, ids_at: int, end: int, ranges: Ranges) -> int:
    """Take the following frames that equal the one at `offset` except for the entry id."""
    entry_at = varint_end(data, ids_at + 3, end) + 1
    frame_bytes = end - offset
    prefix = data[offset:entry_at]
    ledger = number_at(data, ids_at + 3, entry_at - 1)
    into_entry = entry_at - offset
    offset += frame_bytes
    while data.startswith(prefix, offset):
        start, end = offset + into_entry, offset + frame_bytes
        if varint_end(data, start, min(end, len(data))) != end:
            break
        entry = number_at(data, start, end)
        join(ranges, ledger, entry, entry)
        offset = end
    return offset


def parse_flow(data: bytes, offset: int, limits: FrameLimits) -> tuple[int, Flow | None]:
    """The FLOW at `offset`, and the offset after it; None if it is not a regular one."""
    if len(data) < offset + 16 or data[offset + 8 : offset + 11] != FLOW_HEAD:
        return offset, None
    size, command_bytes = SIZES.unpack_from(data, offset)
    end = offset + 4 + size
    # A regular one is short, so the length of the inner message is one byte.
    if (
        end > len(data)
        or size != command_bytes + 4
        or data[offset + 11] != command_bytes - 4
        or data[offset + 12] != 0x08
    ):
        return offset, None
    at = varint_end(data, offset + 13, end)
    if not at or at == end or data[at] != 0x10:
        return offset, None
    permits_at = at + 1
    if varint_end(data, permits_at, min(end, permits_at + PERMIT_BYTES_MAX)) != end:
        return offset, None
    consumer_id, permits = number_at(data, offset + 13, at), number_at(data, permits_at, end)
    return end, Flow(consumer_id, permits)
