"""Entries as Pulsar's producers make them, for tests that need a key, a time or a chunk in them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from magnetar.core.entry.forms import NATIVE
from magnetar.core.entry.record import Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.varints import varint


def entry(
    payload: bytes = b"",
    *,
    key: bytes | None = None,
    sequence_id: int = 0,
    published_ms: int = 1,
    deliver_at_ms: int | None = None,
    chunk: tuple[bytes, int, int] | None = None,
) -> bytes:
    """Make an entry of checksum, metadata and payload. `chunk` is (uuid, chunk id, chunks)."""
    metadata = _bytes(1, b"p") + _number(2, sequence_id) + _number(3, published_ms)
    if key is not None:
        metadata += _bytes(6, key)
    if deliver_at_ms is not None:
        metadata += _number(19, deliver_at_ms)
    if chunk is not None:
        uuid, number, count = chunk
        metadata += _bytes(26, uuid) + _number(27, count) + _number(29, number)
    return _sealed(metadata, payload)


def part(txn: tuple[int, int], payload: bytes = b"", *, sequence_id: int = 0) -> bytes:
    """Make an entry that belongs to a transaction."""
    metadata = _bytes(1, b"p") + _number(2, sequence_id) + _number(3, 1)
    return _sealed(metadata + _number(22, txn[1]) + _number(23, txn[0]), payload)


def _sealed(metadata: bytes, payload: bytes) -> bytes:
    body = struct.pack(">I", len(metadata)) + metadata + payload
    return b"\x0e\x01" + struct.pack(">I", crc32c(body)) + body


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def batch(pairs: Sequence[tuple[bytes | None, bytes | None]], *, published_ms: int = 1) -> bytes:
    """A batch of messages with these keys and values."""
    records = [Record(place, 0, key, value) for place, (key, value) in enumerate(pairs)]
    return NATIVE.entry_of(records, 0, published_ms, "p")
