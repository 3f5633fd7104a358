"""Batches as clients send them, for tests."""

from __future__ import annotations

import struct

from magnetar.core.entry.kafka.record_batch import zigzag
from magnetar.core.kernel.checksum import crc32c

NO_PRODUCER = (-1, -1, -1)


def record(place: int, value: bytes | None, key: bytes | None = None) -> bytes:
    """One record."""

    def sized(data: bytes | None) -> bytes:
        return b"\x01" if data is None else zigzag(len(data)) + data

    inside = b"\0\0" + zigzag(place) + sized(key) + sized(value) + b"\0"
    return zigzag(len(inside)) + inside


def batch(
    *values: bytes,
    producer: tuple[int, int, int] = NO_PRODUCER,
    attributes: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
    base_offset: int = 0,
) -> bytes:
    """A batch of version 2; `producer` is id, epoch and first sequence number."""
    records = b"".join(record(place, value) for place, value in enumerate(values))
    return headed(records, len(values), producer, attributes, (timestamp_ms, base_offset))


def headed(
    records: bytes,
    count: int,
    producer: tuple[int, int, int] = NO_PRODUCER,
    attributes: int = 0,
    begins: tuple[int, int] = (1_700_000_000_000, 0),
) -> bytes:
    """A batch of whatever is to be its records; `begins` is its first time and base offset."""
    time_ms, base_offset = begins
    inside = struct.pack(">hiqqqhii", attributes, count - 1, time_ms, time_ms, *producer, count)
    inside += records
    head = struct.pack(">qiibI", base_offset, len(inside) + 9, 0, 2, crc32c(inside))
    return head + inside
