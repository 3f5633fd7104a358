"""Record batches of Kafka's protocol, made row by row. Pure.

`core/entry/kafka/record_batch.py` has the layout.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.core.entry.kafka import compression, record_batch
from magnetar.core.entry.kafka.record_batch import BatchHeader, zigzag
from magnetar.spark_connector.writing.columns import Headers

_NULL: Final = b"\x01"
_SMALL_MAX: Final = 8_192
_SMALL: Final = [zigzag(number) for number in range(_SMALL_MAX)]
SEQUENCES: Final = 1 << 31
"""After the highest number comes 0 (`DefaultRecordBatch.incrementSequence`)."""


class ProducerIdentity(Struct, frozen=True):
    """Who the server takes us for (KIP-98): its numbers let it drop what comes twice."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None
    """Of a transaction's producer."""


class EncodedBatch(Struct, frozen=True):
    """One batch of one partition, ready to be sent."""

    data: bytes
    first_sequence: int
    rows: int


class BatchEncoder:
    """Gathers the records of one batch."""

    __slots__ = ("_first_ms", "_last_ms", "_pieces", "first_sequence", "size")

    def __init__(self, first_sequence: int) -> None:
        self.first_sequence = first_sequence
        self.size = 0
        """Bytes of what it has, before compression."""
        self._pieces: list[bytes] = []
        self._first_ms = self._last_ms = -1

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, key: bytes | None, value: bytes | None, headers: Headers, time_ms: int) -> None:
        pieces = self._pieces
        if not pieces:
            self._first_ms = time_ms
        if time_ms > self._last_ms:
            self._last_ms = time_ms
        record = b"".join(
            (
                b"\0",
                _number(time_ms - self._first_ms),
                _number(len(pieces)),
                _NULL if key is None else _number(len(key)) + key,
                _NULL if value is None else _number(len(value)) + value,
                _packed(headers) if headers else b"\0",
            )
        )
        record = _number(len(record)) + record
        pieces.append(record)
        self.size += len(record)

    def encoded(self, who: ProducerIdentity, codec: int) -> EncodedBatch:
        """The batch of all that was added."""
        rows = len(self._pieces)
        attributes = codec
        if who.transactional_id is not None:
            attributes |= record_batch.TRANSACTIONAL
        header = BatchHeader(
            base_offset=0,
            size=0,
            leader_epoch=-1,
            magic=record_batch.MAGIC,
            checksum=0,
            attributes=attributes,
            last_delta=rows - 1,
            first_timestamp=self._first_ms,
            last_timestamp=self._last_ms,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            first_sequence=self.first_sequence % SEQUENCES,
            records=rows,
        )
        packed = compression.compress_records(b"".join(self._pieces), codec)
        return EncodedBatch(record_batch.joined(header, packed), self.first_sequence, rows)


def _packed(headers: Headers) -> bytes:
    parts = [_number(len(headers))]
    for header in headers:
        parts += [_NULL if one is None else _number(len(one)) + one for one in header]
    return b"".join(parts)


def _number(number: int) -> bytes:
    """The zigzag varint of a number; most are small, and looked up."""
    return _SMALL[number] if 0 <= number < _SMALL_MAX else zigzag(number)
