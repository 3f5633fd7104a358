"""Whether a record batch may be stored. Pure; what is in one says `core/entry/kafka_batch.py`.

Invariant: a batch is stored as it came, but for the time and the compression where these are the
broker's to say; its base offset and leader epoch, which no checksum covers, are written when it
leaves again.
"""

from __future__ import annotations

from core.checksum import crc32c
from core.entry import kafka_batch
from core.entry.kafka_batch import BatchHeader
from core.errors import Corrupted
from core.native import quickest
from wire.kafka.configs import Rules
from wire.kafka.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    Refused,
)


class BadRecord(Refused):
    """One record for which its whole batch is refused."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(INVALID_RECORD, reason)
        self.place = place


def checked(
    batch: bytes | memoryview, rules: Rules, now_ms: int
) -> tuple[bytes | memoryview, BatchHeader]:
    """The batch to store, and its header; raises `Refused` for one that may not be."""
    if len(batch) > rules.bytes_max:
        raise Refused(MESSAGE_TOO_LARGE, f"a batch of more than {rules.bytes_max} bytes")
    header = sound_now(batch) or _checked_header(batch)
    if rules.keyed:
        _check_keys(batch)
    if rules.append_time:
        return kafka_batch.stamped(batch, now_ms), header
    _check_times(header, rules, now_ms)
    return batch, header


def sound(batch: bytes | memoryview) -> BatchHeader | None:
    """Its header, if a producer may send it anywhere; None if `check` has something to say."""
    try:
        return _checked_header(batch)
    except Refused:
        return None


sound_now = quickest(sound, "wire.kafka.compiled")


def _checked_header(batch: bytes | memoryview) -> BatchHeader:
    try:
        header = kafka_batch.header_of(batch)
    except Corrupted as error:
        raise Refused(CORRUPT_MESSAGE, str(error)) from error
    check(batch, header)
    return header


def check(batch: bytes | memoryview, header: BatchHeader) -> None:
    """Whether a producer may send it anywhere. Its records are not looked at."""
    if header.magic != kafka_batch.MAGIC:
        raise Refused(INVALID_RECORD, f"a batch of version {header.magic}, not {kafka_batch.MAGIC}")
    if header.size != len(batch) - kafka_batch.SIZED_BYTES:
        raise Refused(INVALID_RECORD, "there must be one batch, and nothing behind it")
    if crc32c(memoryview(batch)[kafka_batch.CHECKED_AT :]) != header.checksum:
        raise Refused(CORRUPT_MESSAGE, "a batch did not arrive as it was sent")
    if header.records < 1 or header.last_delta != header.records - 1:
        raise Refused(INVALID_RECORD, "a batch does not count its records")
    if header.attributes & kafka_batch.CONTROL:
        raise Refused(INVALID_RECORD, "control batches are for brokers to write")
    if header.attributes & kafka_batch.LOG_APPEND_TIME:
        raise Refused(INVALID_TIMESTAMP, "the time of appending is for the broker to say")
    if header.producer_id >= 0 and header.first_sequence < 0:
        raise Refused(INVALID_RECORD, "a producer with an id numbers what it sends")


def as_compressed(batch: bytes | memoryview, codec: int) -> bytes | memoryview:
    """The batch as its log wants it. Takes its time: not for the loop."""
    header = _checked_header(batch)
    try:
        if header.attributes & kafka_batch.CODEC == codec:
            return batch
        return kafka_batch.recompressed(batch, codec)
    except Corrupted as error:
        raise Refused(CORRUPT_MESSAGE, str(error)) from error


def _check_times(header: BatchHeader, rules: Rules, now_ms: int) -> None:
    """By the header alone: its first time stands for the earliest."""
    if header.last_timestamp - now_ms > rules.after_ms:
        limit = rules.after_ms
        raise Refused(INVALID_TIMESTAMP, f"a record is more than {limit} ms ahead of our clock")
    if 0 <= header.first_timestamp < now_ms - rules.before_ms:
        raise Refused(
            INVALID_TIMESTAMP,
            f"a record is more than {rules.before_ms} ms behind the broker's time",
        )


def _check_keys(batch: bytes | memoryview) -> None:
    """A log that is compacted goes by keys, so all have one."""
    try:
        records = kafka_batch.records_of(bytes(batch))
    except Corrupted as error:
        raise Refused(INVALID_RECORD, str(error)) from error
    for record in records:
        if record.key is None:
            raise BadRecord(
                record.place, "Compacted topic cannot accept message without key in topic partition"
            )
