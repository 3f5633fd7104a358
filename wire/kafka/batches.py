"""Record batches: their header, and whether they are what they say. Pure.

    off  size                                  off  size
      0     8  base offset    ours to set       27     8  first timestamp, ms
      8     4  bytes behind this field          35     8  last timestamp, ms
     12     4  leader epoch   ours to set       43     8  producer id, -1 for none
     16     1  magic, 2                         51     2  producer epoch
     17     4  CRC32C of what follows           53     4  first sequence number, -1 for none
     21     2  attributes                       57     4  records
     23     4  last offset - base offset        61        records, together compressed

Attributes: 0-2 codec, 3 timestamps are the server's, 4 part of a transaction, 5 control.

Invariant: a batch is stored as it came; only its base offset and leader epoch, which no checksum
covers, are written when it leaves again.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, NamedTuple

from core.checksum import crc32c
from wire.kafka.errors import CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP

HEADER_BYTES: Final = 61
_SIZED_BYTES: Final = 12
"""What the size does not count."""
_CHECKED_AT: Final = 21
_LAYOUT = Layout(">qiibIhiqqqhii").unpack_from
_HEAD = Layout(">qii").pack
_HEAD_BYTES: Final = 16
NO_PRODUCER: Final = -1
MAGIC: Final = 2

CODEC: Final = 7
LOG_APPEND_TIME: Final = 8
TRANSACTIONAL: Final = 16
CONTROL: Final = 32
ZSTD: Final = 4


class Header(NamedTuple):
    """The fields in their order."""

    base_offset: int
    size: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_delta: int
    first_timestamp: int
    last_timestamp: int
    producer_id: int
    producer_epoch: int
    first_sequence: int
    records: int


class BadBatch(Exception):
    """Why a batch is not taken; `code` is Kafka's."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def header_of(batch: bytes) -> Header:
    """Raises `struct.error` for one that is cut short."""
    return Header(*_LAYOUT(batch))


def with_offset(batch: bytes, base_offset: int, leader_epoch: int = 0) -> tuple[bytes, memoryview]:
    """The same batch at another offset, in two pieces, of which the larger is no copy."""
    (size,) = _SIZE(batch, 8)
    return _HEAD(base_offset, size, leader_epoch), memoryview(batch)[_HEAD_BYTES:]


_SIZE = Layout(">i").unpack_from


def check(batch: bytes, header: Header) -> None:
    """Raise `BadBatch` for one that a producer may not send. Its records are not looked at."""
    if header.magic != MAGIC:
        raise BadBatch(INVALID_RECORD, f"a batch of version {header.magic}, not {MAGIC}")
    if header.size != len(batch) - _SIZED_BYTES:
        raise BadBatch(INVALID_RECORD, "there must be one batch, and nothing behind it")
    if crc32c(memoryview(batch)[_CHECKED_AT:]) != header.checksum:
        raise BadBatch(CORRUPT_MESSAGE, "a batch did not arrive as it was sent")
    if header.records < 1 or header.last_delta != header.records - 1:
        raise BadBatch(INVALID_RECORD, "a batch does not count its records")
    if header.attributes & CONTROL:
        raise BadBatch(INVALID_RECORD, "control batches are for brokers to write")
    if header.attributes & LOG_APPEND_TIME:
        raise BadBatch(INVALID_TIMESTAMP, "the time of appending is for the broker to say")
    if header.producer_id >= 0 and header.first_sequence < 0:
        raise BadBatch(INVALID_RECORD, "a producer with an id numbers what it sends")
