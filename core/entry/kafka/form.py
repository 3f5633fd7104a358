"""Kafka's form: a record batch as its producer sent it. See `core/entry/form.py`. Pure.

    sent = u32 size | metadata | record batch

Metadata is that of a Pulsar message, without a checksum (the batch has its own): producer `kafka`,
publish time, the number of records, and the property `entry.format=kafka`, by which the tools of
KoP (`KafkaV1EntryFormatter.java`) know it too. The number counts offsets, not records: a batch that
was compacted has holes.

Invariant: a batch is stored as it came, and taken apart only for other protocols and compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.form import Chunk, MarkKind, TransactionKey, TransactionMark
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.kafka.compaction import UnpackedBatch
from magnetar.core.entry.record import NO_TIME, DetailedRecord, Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import number_at, varint, varint_end
from magnetar.core.native import quickest

NAME: Final = "kafka"
BEGINS: Final[bytes] = b"\x0a\x05kafka\x10\x00\x18"
"""Producer name, sequence id, and the tag of the publish time: unique to this form."""
_SIZE: Final = Layout(">I")
_FORMAT: Final = b"\x22\x15\x0a\x0centry.format\x12\x05kafka"
_COUNT: Final = b"\x58"
_SOME_TIME_MS: Final = 1 << 41
"""A present-day time: the varints of all of them have the same length."""


# -- the batch and what stands before it ----------------------------------------------------------


def head(offsets: int, now_ms: int) -> bytes:
    """The bytes before a batch with that many offsets."""
    metadata = b"".join((BEGINS, varint(now_ms), _FORMAT, _COUNT, varint(offsets)))
    return _SIZE.pack(len(metadata)) + metadata


def head_bytes(offsets: int) -> int:
    """The length of `head` for a present-day time."""
    return len(head(offsets, _SOME_TIME_MS))


def py_wrapped(batch: bytes | memoryview, offsets: int, now_ms: int) -> bytes:
    """The entry for a batch with that many offsets."""
    return b"".join((head(offsets, now_ms), batch))


def batch_at(entry: bytes, at: int) -> int:
    """The offset of the batch in an entry whose form begins at `at`; -1 for other forms."""
    if not entry.startswith(BEGINS, at + _SIZE.size):
        return -1
    (size,) = _SIZE.unpack_from(entry, at)
    return at + _SIZE.size + int(size)


def batch_in(sent: bytes) -> bytes | None:
    """The batch; None in an entry of another form."""
    at = batch_at(sent, 0)
    return sent[at:] if at >= 0 else None


def py_latest_time(sent: bytes) -> int:
    """The latest time in the batch; -1 if it states none, or is none."""
    at = batch_at(sent, 0)
    if at < 0:
        return -1
    try:
        return record_batch.header_of(memoryview(sent)[at:]).last_timestamp
    except Corrupted:
        return -1


wrapped = quickest(py_wrapped, "magnetar.core.entry.kafka.compiled")
latest_time = quickest(py_latest_time, "magnetar.core.entry.kafka.compiled")


# -- what core asks of a form ---------------------------------------------------------------------


def publish_time(sent: bytes) -> int:
    """The time of the append in ms; 0 if the metadata is damaged."""
    at = _SIZE.size + len(BEGINS)
    end = varint_end(sent, at, len(sent))
    return number_at(sent, at, end) if end else 0


def deliver_at(_sent: bytes) -> None:
    """None: Kafka has no delayed delivery."""


def ordering_key(sent: bytes) -> bytes | None:
    """The first record's key, which decides for the batch, as for a batch of Pulsar's."""
    try:
        found = records(sent)
    except Corrupted:
        return None
    return found[0].key if found else None


def sequence(_sent: bytes) -> None:
    """None: Kafka deduplicates by producer id (KIP-98), not by name."""


def chunk(_sent: bytes) -> Chunk | None:
    """None: a record is never split."""
    return None


def remaining_places(_sent: bytes) -> Sequence[int]:
    return ()


def transaction_mark(sent: bytes) -> TransactionMark | None:
    """Read from the header; of a control batch, the record has the outcome."""
    at = batch_at(sent, 0)
    header = record_batch.header_of(memoryview(sent)[at:])
    if not header.attributes & record_batch.TRANSACTIONAL:
        return None
    if not header.attributes & record_batch.CONTROL:
        return TransactionMark(header.producer_id, MarkKind.PART)
    kind = MarkKind.COMMIT if record_batch.is_commit(sent[at:]) else MarkKind.ABORT
    return TransactionMark(header.producer_id, kind)


def records(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    """Its records; none of a control batch, which only states the outcome of a transaction."""
    batch = sent[batch_at(sent, 0) :]
    if record_batch.header_of(batch).attributes & record_batch.CONTROL:
        return ()
    return record_batch.records_of(batch)


def messages(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
    header = record_batch.header_of(memoryview(sent)[batch_at(sent, 0) :])
    stored_ms = publish_time(sent) or NO_TIME
    known = header.producer_id >= 0
    producer = b"%d" % header.producer_id if known else None
    return [
        DetailedRecord(
            one.place,
            stored_ms,
            one.timestamp_ms,
            one.key,
            None,
            one.value,
            one.headers,
            producer,
            header.first_sequence + one.place if known else None,
            None,
        )
        for one in records(sent)
    ]


def entry_of(records: Sequence[Record], index: int, publish_time_ms: int, _producer: str) -> bytes:
    """A batch without a producer id (KIP-98): batches have no producer names."""
    offsets = records[-1].place + 1 if records else 1
    batch = record_batch.batch_of(records, index, offsets)
    return wrapped(batch, offsets, publish_time_ms)


def unpacked(sent: bytes) -> UnpackedBatch:
    return UnpackedBatch(sent, batch_at(sent, 0))


keyed = unpacked


def marker(key: TransactionKey, epoch: int, now_ms: int, *, committed: bool) -> bytes:
    """A control batch (`EndTransactionMarker.java` of 4.1) of the producer with that id."""
    assert isinstance(key, int), "the id of a producer"
    batch = record_batch.marker(key, epoch, now_ms, committed=committed)
    return wrapped(batch, 1, now_ms)
