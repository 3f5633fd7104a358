"""Validation of record batches before they are stored. Pure.

`core/entry/kafka/record_batch.py` has their layout. The rules are those of `LogValidator` and
`ProduceRequest.validateRecords` of Kafka 4.3.

Invariant: a batch is stored as it came, with three exceptions: its time if the topic has
LogAppendTime, its compression if the topic has a codec, and a last timestamp that differs from its
records. Base offset and leader epoch, which the checksum does not cover, are written on Fetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.kafka.compression import (
    CODECS,
    NONE,
    RECORDS_BYTES_MAX,
    Oversized,
    decompress_records,
)
from magnetar.core.entry.kafka.record_batch import CODEC, HEADER_BYTES, BatchHeader
from magnetar.core.entry.record import NO_TIME
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.native import quickest
from magnetar.wire.kafka.configs import INT64_MAX, ProduceRules
from magnetar.wire.kafka.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNSUPPORTED_COMPRESSION,
    KafkaRefusal,
)
from magnetar.wire.kafka.partition.contents import bad, described, spread

RECORD_ERRORS_MAX: Final = 1_000
"""Bad records of one batch that an error names."""
ANY_TIME: Final = (1 << 63) - 1
AT_ONCE_BYTES_MAX: Final = 256 * 1024
"""Uncompressed size of records; larger batches are checked in a thread."""
AT_ONCE_BYTES_MIN: Final = 32 * 1024
AT_ONCE_RATIO: Final = 16
"""A batch that expands to more than the first, and by more than the second, is checked in a thread
too: many such small batches would hold up the loop.
"""
EXPANDED_BYTES_MIN: Final = 16 * 1024 * 1024
EXPANDED_RATIO: Final = 256
"""A batch that expands to more than the first, and by more than the second, is refused, so that the
cost of a check stays in proportion to the cost of sending. The code is MESSAGE_TOO_LARGE, on which
Java's producers split a batch (KIP-126); librdkafka counts `message.max.bytes` uncompressed.
"""
PACKED_AT_ONCE_BYTES_MAX: Final = 32 * 1024
"""Compressed size; larger batches rarely expand to few enough bytes for the loop."""
ATTRIBUTES_AT: Final = record_batch.CHECKED_AT
NO_KEY: Final = "Compacted topic cannot accept message without key in topic partition"
"""As `LogValidator.validateKey` words it."""
BAD_TIMES: Final = "One or more records have been rejected due to invalid timestamp"
"""As `LogValidator.processRecordErrors` words it."""


class BadRecords(KafkaRefusal):
    """A batch is refused for some of its records: their indexes, and the faults (KIP-467)."""

    def __init__(self, faults: Sequence[tuple[int, str]], code: int = INVALID_RECORD) -> None:
        place, reason = faults[0]
        text = f"{len(faults)} bad records, the first is {place}: {reason}"
        super().__init__(code, BAD_TIMES if code == INVALID_TIMESTAMP else text)
        self.faults = faults


def checked(
    batch: bytes | memoryview,
    rules: ProduceRules,
    now_ms: int,
    size_max: int = 0,
) -> tuple[bytes | memoryview, BatchHeader]:
    """The batch to store, and its header.

    Raises `KafkaRefusal` for a batch that may not be stored, and `Oversized` if its compressed
    records expand to more than `size_max` bytes, or if that is 0, to more than the loop may check.
    """
    _check_size(batch, rules)
    header = sound(batch) or _checked_header(batch)
    codec = header.attributes & CODEC
    records, at = (batch, HEADER_BYTES) if codec == NONE else (_undone(batch, codec, size_max), 0)
    found = spread(records, at, header.records, rules.keyed)
    if found is None:
        _refuse_bad(records, at, header, rules, now_ms)
        raise KafkaRefusal(INVALID_RECORD, "its records do not add up")
    if rules.append_time:
        return record_batch.stamped(batch, now_ms), header
    low, high = header.first_timestamp + found[0], header.first_timestamp + found[1]
    if high - now_ms > rules.after_ms or now_ms - low > rules.before_ms:
        _refuse_bad(records, at, header, rules, now_ms)
    if high != header.last_timestamp:
        if not -INT64_MAX <= high <= INT64_MAX:
            raise KafkaRefusal(INVALID_TIMESTAMP, "a record has a time out of range")
        return record_batch.dated(batch, high)
    return batch, header


def prepared(
    batch: bytes | memoryview, rules: ProduceRules, now_ms: int
) -> tuple[bytes | memoryview, BatchHeader]:
    """As `checked`, and recompressed with the topic's codec. Slow: call it in a thread."""
    try:
        batch, header = checked(batch, rules, now_ms, _expanded_max(batch))
    except Oversized as error:  # Java's producer splits the batch (KIP-126)
        raise KafkaRefusal(MESSAGE_TOO_LARGE, str(error)) from None
    if rules.codec is None or header.attributes & CODEC == rules.codec:
        return batch, header
    batch = record_batch.recompressed(batch, rules.codec)
    _check_size(batch, rules)
    return batch, record_batch.header_of(batch)


def _expanded_max(batch: bytes | memoryview) -> int:
    """The limit of the uncompressed records of a batch, in bytes."""
    return min(max(len(batch) * EXPANDED_RATIO, EXPANDED_BYTES_MIN), RECORDS_BYTES_MAX)


def _at_once_max(batch: bytes | memoryview) -> int:
    return min(max(len(batch) * AT_ONCE_RATIO, AT_ONCE_BYTES_MIN), AT_ONCE_BYTES_MAX)


def for_the_loop(batch: bytes | memoryview) -> bool:
    """Whether a batch is small enough, by its header, to be checked on the loop."""
    packed = len(batch) > ATTRIBUTES_AT + 1 and batch[ATTRIBUTES_AT + 1] & CODEC
    return not packed or len(batch) <= PACKED_AT_ONCE_BYTES_MAX


def py_sound(batch: bytes | memoryview) -> BatchHeader | None:
    """The header of a batch; None if `check` refuses it."""
    try:
        return _checked_header(batch)
    except KafkaRefusal:
        return None


sound = quickest(py_sound, "magnetar.wire.kafka.compiled")


def _checked_header(batch: bytes | memoryview) -> BatchHeader:
    try:
        header = record_batch.header_of(batch)
    except Corrupted as error:
        raise KafkaRefusal(CORRUPT_MESSAGE, str(error)) from error
    check(batch, header)
    return header


def check(batch: bytes | memoryview, header: BatchHeader) -> None:
    """Check the header of a batch, independent of the topic; `spread` checks the records."""
    if header.magic != record_batch.MAGIC:
        raise KafkaRefusal(
            INVALID_RECORD, f"a batch of version {header.magic}, not {record_batch.MAGIC}"
        )
    if header.size != len(batch) - record_batch.SIZED_BYTES:
        raise KafkaRefusal(INVALID_RECORD, "there must be one batch, and nothing behind it")
    if crc32c(memoryview(batch)[record_batch.CHECKED_AT :]) != header.checksum:
        raise KafkaRefusal(CORRUPT_MESSAGE, "a batch did not arrive as it was sent")
    if header.records < 1 or header.last_delta != header.records - 1:
        raise KafkaRefusal(INVALID_RECORD, "a batch does not count its records")
    if header.attributes & record_batch.CONTROL:
        raise KafkaRefusal(INVALID_RECORD, "control batches are for brokers to write")
    if header.attributes & record_batch.LOG_APPEND_TIME:
        # `LogValidator.validateTimestamp`: only the broker sets LogAppendTime
        raise KafkaRefusal(INVALID_TIMESTAMP, "only the broker sets LogAppendTime")
    if header.producer_id >= 0 and (header.first_sequence < 0 or header.producer_epoch < 0):
        raise KafkaRefusal(INVALID_RECORD, "a producer id needs an epoch and a sequence number")
    if header.producer_id < 0 and header.attributes & record_batch.TRANSACTIONAL:
        raise KafkaRefusal(INVALID_RECORD, "a transaction needs a producer id")


def _check_size(batch: bytes | memoryview, rules: ProduceRules) -> None:
    if len(batch) > rules.bytes_max:
        raise KafkaRefusal(MESSAGE_TOO_LARGE, f"a batch of more than {rules.bytes_max} bytes")


def _undone(batch: bytes | memoryview, codec: int, size_max: int) -> bytes:
    if codec not in CODECS:
        raise KafkaRefusal(UNSUPPORTED_COMPRESSION, f"unknown codec {codec}")
    try:
        payload = memoryview(batch)[HEADER_BYTES:]
        return decompress_records(payload, codec, size_max or _at_once_max(batch))
    except Oversized:
        raise
    except Corrupted as error:
        raise KafkaRefusal(INVALID_RECORD, str(error)) from error


def _refuse_bad(
    records: bytes | memoryview, at: int, header: BatchHeader, rules: ProduceRules, now_ms: int
) -> None:
    """Raise `BadRecords` with the faults of single records, if there are any."""
    faults: list[tuple[int, str]] = []
    code = INVALID_RECORD
    base = header.first_timestamp
    times = (-ANY_TIME, ANY_TIME)
    if not rules.append_time:
        times = (
            _bounded(now_ms - rules.before_ms - base),
            _bounded(now_ms + rules.after_ms - base),
        )
    places, left = bad(records, at, header.records, rules.keyed, times, RECORD_ERRORS_MAX)
    for place, begin, end in places:
        found = described(bytes(records[begin:end]), place)
        fault = found.fault
        if not fault and rules.keyed and not found.has_key:
            fault = NO_KEY
        if not fault:
            fault = _bad_time(base + found.time_delta, rules, now_ms)
            code = INVALID_TIMESTAMP if fault else code
        if fault:
            faults.append((place, fault))
    if faults:
        raise BadRecords(faults, code)
    if left < header.records:
        text = f"a batch of {header.records} records ends in record {left}"
        raise KafkaRefusal(INVALID_RECORD, text)


def _bounded(delta_ms: int) -> int:
    return max(-ANY_TIME, min(delta_ms, ANY_TIME))


def _bad_time(time_ms: int, rules: ProduceRules, now_ms: int) -> str:
    """The fault of a record's time against `message.timestamp.before.max.ms` and `after.max.ms`.

    Both are limits of CreateTime only (KIP-937).
    """
    if rules.append_time or time_ms == NO_TIME:
        return ""
    if time_ms - now_ms > rules.after_ms:
        return f"it is more than {rules.after_ms} ms ahead of our clock"
    if now_ms - time_ms > rules.before_ms:
        return f"it is more than {rules.before_ms} ms behind the broker's time"
    return ""
