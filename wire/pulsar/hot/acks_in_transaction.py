"""Hand-written decoding of ACKs in a transaction, a run at a time.

Java's client acknowledges each message in a command of its own, and wants each answered: those of
one transaction differ in the entry id and the request id alone.

Invariant: as in `acks`; what is not one message id, the transaction and a request id is left to
protobuf.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.varints import number_at, varint_end
from magnetar.wire.pulsar.events import Acks
from magnetar.wire.pulsar.hot.acks import ID_TAG, REQUEST_ID_TAG, Ranges, join, read_head
from magnetar.wire.pulsar.hot.sends import FrameLimits

LEAST_BITS_TAG: Final = 0x30
MOST_BITS_TAG: Final = 0x38
WORD: Final = (1 << 64) - 1
RUN_MAX: Final = 1_000
"""Commands of one run."""


def parse_acks_in_transaction(
    data: bytes, offset: int, limits: FrameLimits
) -> tuple[int, Acks | None]:
    """The ACK at `offset`, joined with following ones that differ in entry and request alone."""
    head = read_head(data, offset, limits.frame_bytes_max)
    if head is None or head.cumulative:
        return offset, None
    at, end = head.ids_at, head.end
    if end < at + 6 or data[at] != ID_TAG or data[at + 2] != 0x08:
        return offset, None
    id_end = at + 2 + data[at + 1]
    ledger_end = varint_end(data, at + 3, end)
    if not ledger_end or ledger_end >= end or data[ledger_end] != 0x10:
        return offset, None
    entry_at = ledger_end + 1
    entry_end = varint_end(data, entry_at, end)
    if entry_end != id_end or not entry_end:
        return offset, None
    least_end = _field_end(data, entry_end, end, LEAST_BITS_TAG)
    most_end = least_end and _field_end(data, least_end, end, MOST_BITS_TAG)
    if not most_end or _field_end(data, most_end, end, REQUEST_ID_TAG) != end:
        return offset, None
    least = number_at(data, entry_end + 1, least_end) & WORD
    most = number_at(data, least_end + 1, most_end) & WORD
    ledger, entry = number_at(data, at + 3, ledger_end), number_at(data, entry_at, entry_end)
    request_id = number_at(data, most_end + 1, end) & WORD
    ranges: Ranges = [(ledger, entry, entry)]
    joined = [(request_id, ledger, entry)]
    behind = _take_alike(data, (offset, entry_at, entry_end, most_end, end), ranges, joined)
    single = len(joined) == 1
    return behind, Acks(
        head.consumer_id,
        cumulative=False,
        ranges=ranges,
        request_id=request_id if single else None,
        txn=(most, least),
        joined=[] if single else joined,
    )


def _field_end(data: bytes, at: int, end: int, tag: int) -> int:
    """The end of a number that is the field at `at`; 0 if it is another field."""
    return varint_end(data, at + 1, end) if at < end and data[at] == tag else 0


def _take_alike(
    data: bytes,
    first: tuple[int, int, int, int, int],
    ranges: Ranges,
    joined: list[tuple[int, int, int]],
) -> int:
    """Take the frames that follow the first one and equal it but for two numbers of the same
    sizes; returns the offset behind them.
    """
    offset, entry_at, entry_end, request_tag_at, end = first
    size, whole = end - offset, len(data)
    prefix, middle = data[offset:entry_at], data[entry_end : request_tag_at + 1]
    ledger = joined[0][1]
    entry_in, entry_out = entry_at - offset, entry_end - offset
    request_in = request_tag_at + 1 - offset
    offset = end
    while len(joined) < RUN_MAX and offset + size <= whole and data.startswith(prefix, offset):
        start, stop = offset + entry_in, offset + entry_out
        request_at, end = offset + request_in, offset + size
        if (
            varint_end(data, start, stop) != stop
            or not data.startswith(middle, stop)
            or varint_end(data, request_at, end) != end
        ):
            break
        entry = number_at(data, start, stop)
        join(ranges, ledger, entry, entry)
        joined.append((number_at(data, request_at, end) & WORD, ledger, entry))
        offset = end
    return offset
