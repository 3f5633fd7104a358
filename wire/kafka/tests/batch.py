"""Batches as clients send them, for tests."""

from __future__ import annotations

import struct

from core.checksum import crc32c

NO_PRODUCER = (-1, -1, -1)


def record(place: int, value: bytes | None, key: bytes | None = None) -> bytes:
    """One record of less than 64 bytes."""

    def sized(data: bytes | None) -> bytes:
        return b"\x01" if data is None else bytes((len(data) << 1,)) + data

    inside = b"\0\0" + bytes((place << 1,)) + sized(key) + sized(value) + b"\0"
    return bytes((len(inside) << 1,)) + inside


def batch(
    *values: bytes,
    producer: tuple[int, int, int] = NO_PRODUCER,
    attributes: int = 0,
    timestamp_ms: int = 1_700_000_000_000,
    base_offset: int = 0,
) -> bytes:
    """A batch of version 2; `producer` is id, epoch and first sequence number."""
    records = b"".join(record(place, value) for place, value in enumerate(values))
    inside = struct.pack(
        ">hiqqqhii",
        attributes,
        len(values) - 1,
        timestamp_ms,
        timestamp_ms,
        *producer,
        len(values),
    )
    inside += records
    head = struct.pack(">qiibI", base_offset, len(inside) + 9, 0, 2, crc32c(inside))
    return head + inside
