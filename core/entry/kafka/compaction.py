"""A Kafka batch, unpacked for compaction. Pure.

It does what Kafka's `Cleaner` does. The batch keeps its first and last offset, producer id, epoch
and sequence, its codec and the type of its timestamps; its last timestamp is that of the remaining
records. If no record remains, a header alone may stay. A batch with tombstones states when they may
be removed (KIP-534): attribute 64, and that time in place of the first timestamp, from which the
records' own are counted.

Invariant: the bytes of a remaining record are unchanged except for its timestamp delta.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.core.entry.compaction import Item, KeyRows, Removal, rows_of
from magnetar.core.entry.kafka import compression
from magnetar.core.entry.kafka.record_batch import (
    CODEC,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    header_of,
    joined,
    number_at,
    string_at,
    zigzag,
)
from magnetar.core.entry.record import NO_TIME
from magnetar.core.kernel.errors import Corrupted

HORIZON: Final = 64
"""Attribute: the first timestamp is the time when tombstones may be removed (KIP-534)."""


class _Piece(NamedTuple):
    """One record and its offsets in the batch."""

    item: Item
    time_delta: int
    start: int
    """The offset of its attributes, after its size."""
    rest: int
    """The offset of the rest, after its timestamp delta."""
    end: int


class UnpackedBatch:
    """An unpacked batch."""

    __slots__ = ("_before", "_data", "_pieces", "header")

    notes_tombstone_time = loses_some = True
    is_decided = True
    """Open transactions are known elsewhere."""

    def __init__(self, tail: bytes, at: int) -> None:
        """The batch begins at `at` of an entry without the broker's header. Raises `Corrupted`."""
        self._before = tail[:at]
        batch = tail[at:]
        self.header: BatchHeader = header_of(batch)
        codec = self.header.attributes & CODEC
        self._data = compression.decompress_records(batch[HEADER_BYTES:], codec)
        self._pieces = _pieces(self._data, self.header.records)

    @property
    def items(self) -> list[Item]:
        return [piece.item for piece in self._pieces]

    @property
    def producer(self) -> int | None:
        """The id of an idempotent producer (KIP-98); others send -1."""
        return self.header.producer_id if self.header.producer_id >= 0 else None

    @property
    def tombstones_until_ms(self) -> int:
        """The delete horizon of KIP-534; -1 if it is not set yet."""
        return self.header.first_timestamp if self.header.attributes & HORIZON else -1

    def key_rows(self) -> KeyRows:
        return rows_of(self.items)

    def without(self, fate: Removal) -> bytes:
        """The batch with its remaining records, which may be its header alone."""
        return self._before + self._batch_without(fate)

    def _batch_without(self, fate: Removal) -> bytes:
        header = self.header
        left = [piece for piece in self._pieces if piece.item.place not in fate.lost]
        if not left:
            attributes = header.attributes & ~(CODEC | HORIZON)
            empty = header._replace(attributes=attributes, first_timestamp=NO_TIME, records=0)
            return joined(empty, b"")
        attributes, base = header.attributes, header.first_timestamp
        if fate.tombstones_until_ms >= 0:
            attributes, base = attributes | HORIZON, fate.tombstones_until_ms
        latest = header.last_timestamp
        if not attributes & LOG_APPEND_TIME:
            latest = header.first_timestamp + max(piece.time_delta for piece in left)
        shift = header.first_timestamp - base
        records = b"".join([_moved(self._data, piece, shift) for piece in left])
        head = header._replace(
            attributes=attributes,
            first_timestamp=base,
            last_timestamp=latest,
            records=len(left),
        )
        return joined(head, compression.compress_records(records, attributes & CODEC))


def _moved(data: bytes, piece: _Piece, shift: int) -> bytes:
    """A record with its timestamp delta counted from another base."""
    inside = data[piece.start : piece.end]
    if shift:
        delta = zigzag(piece.time_delta + shift)
        inside = data[piece.start : piece.start + 1] + delta + data[piece.rest : piece.end]
    return zigzag(len(inside)) + inside


def _pieces(data: bytes, count: int) -> list[_Piece]:
    found = []
    at = 0
    try:
        for _ in range(count):
            size, at = number_at(data, at)
            start, end = at, at + size
            if size < 0 or end > len(data):
                raise Corrupted("a record is longer than its batch")
            delta, rest = number_at(data, at + 1)
            place, at = number_at(data, rest)
            key, at = string_at(data, at, end)
            value_size, _ = number_at(data, at)
            found.append(_Piece(Item(place, key, value_size), delta, start, rest, end))
            at = end
    except IndexError as error:
        raise Corrupted("the records of a batch end too soon") from error
    return found
