"""Kafka's form: a record batch as it came, wrapped (`wrapper.py`). See `core/entry/form.py`.

Invariant: a batch is stored as its producer sent it, and taken apart only for other protocols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.entry.form import Chunk, MarkKind, TransactionMark
from magnetar.core.entry.kafka import record_batch, wrapper
from magnetar.core.entry.kafka.compaction import UnpackedBatch
from magnetar.core.entry.record import Record
from magnetar.core.kernel.errors import Corrupted

NAME: Final = "kafka"
BEGINS: Final = wrapper.BEGINS

publish_time = wrapper.publish_time
latest_time = wrapper.last_time_now
"""Its header's maximum timestamp."""


def deliver_at(_sent: bytes) -> None:
    """At once: Kafka delays nothing."""


def ordering_key(sent: bytes) -> bytes | None:
    """The first record's key; the rest of a batch has no say, as in a batch of Pulsar's."""
    try:
        found = records(sent)
    except Corrupted:
        return None
    return found[0].key if found else None


def sequence(_sent: bytes) -> None:
    """Kafka's producers are known by numbers of their own (KIP-98)."""


def chunk(_sent: bytes) -> Chunk | None:
    """A record is never divided."""
    return None


def transaction_mark(sent: bytes) -> TransactionMark | None:
    """By the header alone, but for a control batch, whose record says which end it is."""
    at = wrapper.batch_at(sent, 0)
    header = record_batch.header_of(memoryview(sent)[at:])
    if not header.attributes & record_batch.TRANSACTIONAL:
        return None
    if not header.attributes & record_batch.CONTROL:
        return TransactionMark(header.producer_id, MarkKind.PART)
    kind = MarkKind.COMMIT if record_batch.is_commit(sent[at:]) else MarkKind.ABORT
    return TransactionMark(header.producer_id, kind)


def records(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    """A control batch has none for other protocols: it only says how a transaction ended."""
    batch = sent[wrapper.batch_at(sent, 0) :]
    if record_batch.header_of(batch).attributes & record_batch.CONTROL:
        return ()
    return record_batch.records_of(batch)


def entry_of(records: Sequence[Record], index: int, publish_time_ms: int, _producer: str) -> bytes:
    """A batch names no producer but by number (KIP-98), and this one has none."""
    offsets = records[-1].place + 1 if records else 1
    batch = record_batch.batch_of(records, index, offsets)
    return wrapper.wrapped(batch, offsets, publish_time_ms)


def unpacked(sent: bytes) -> UnpackedBatch:
    return UnpackedBatch(sent, wrapper.batch_at(sent, 0))


def marker(writer: int, epoch: int, now_ms: int, *, committed: bool) -> bytes:
    """A control batch (`EndTransactionMarker.java` of 4.1)."""
    batch = record_batch.marker(writer, epoch, now_ms, committed=committed)
    return wrapper.wrapped_now(batch, 1, now_ms)
