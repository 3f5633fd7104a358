"""What a Kafka producer sent, as an entry. Pure.

    u32 size | metadata | record batch as it came

Metadata is that of a Pulsar message, without a checksum (the batch has its own): producer `kafka`,
publish time, the number of records, and the property `entry.format=kafka`, by which other servers'
tools know it too. The number counts offsets, not records: a batch that was compacted has holes.

Invariant: a batch is never taken apart here.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.kafka import record_batch
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import number_at, varint, varint_end
from magnetar.core.native import quickest

_SIZE: Final = Layout(">I")
BEGINS: Final = b"\x0a\x05kafka\x10\x00\x18"
"""Producer name, sequence id, and the tag of the publish time, as nobody else writes them."""
_FORMAT: Final = b"\x22\x15\x0a\x0centry.format\x12\x05kafka"
_COUNT: Final = b"\x58"
_SOME_TIME_MS: Final = 1 << 41
"""All times from 1971 to 2109 take as many bytes."""


def front(offsets: int, now_ms: int) -> bytes:
    """What stands before a batch that takes so many offsets."""
    metadata = b"".join((BEGINS, varint(now_ms), _FORMAT, _COUNT, varint(offsets)))
    return _SIZE.pack(len(metadata)) + metadata


def front_bytes(offsets: int) -> int:
    """How long that will be, whenever the batch is stored in our days."""
    return len(front(offsets, _SOME_TIME_MS))


def wrapped(batch: bytes | memoryview, offsets: int, now_ms: int) -> bytes:
    """The entry for a batch that takes so many offsets."""
    return b"".join((front(offsets, now_ms), batch))


def batch_at(entry: bytes, at: int) -> int:
    """Where in an entry the batch begins, if what a producer sent begins at `at`; -1 for none."""
    if not entry.startswith(BEGINS, at + _SIZE.size):
        return -1
    (size,) = _SIZE.unpack_from(entry, at)
    return at + _SIZE.size + int(size)


def batch_in(tail: bytes) -> bytes | None:
    """The batch in what is behind the broker's header; None if it is no Kafka producer's."""
    at = batch_at(tail, 0)
    return tail[at:] if at >= 0 else None


def publish_time(sent: bytes) -> int:
    """When the entry was made, in ms; 0 if its metadata is damaged."""
    at = _SIZE.size + len(BEGINS)
    end = varint_end(sent, at, len(sent))
    return number_at(sent, at, end) if end else 0


def last_time(tail: bytes) -> int:
    """The latest time in the batch; -1 if it says none, or is no Kafka producer's."""
    at = batch_at(tail, 0)
    if at < 0:
        return -1
    try:
        return record_batch.header_of(memoryview(tail)[at:]).last_timestamp
    except Corrupted:
        return -1


wrapped_now = quickest(wrapped, "magnetar.core.entry.kafka.compiled")
last_time_now = quickest(last_time, "magnetar.core.entry.kafka.compiled")
