"""Entries of one protocol in the form of another, for whoever reads them there. Pure.

What is stored is what its producer sent; it crosses entry by entry when it is read, and is never
stored again. What both sides have is exact: keys, values that are there, empty or absent, headers
and properties, times, the order. What only one side has is told in docs/kafka.md.

Invariant: an entry crosses or is `Corrupted`; nothing else is raised.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.core.entry import kafka_batch, kafka_form, pulsar_messages, pulsar_metadata
from magnetar.core.entry.pulsar_messages import PulsarMessage
from magnetar.core.entry.record import Record


def to_pulsar(tail: bytes, batch: bytes, index: int) -> tuple[bytes, int]:
    """A Kafka producer's entry as a batch of Pulsar messages, and how many they are.

    There may be none, such as in a batch that only tells of the end of a transaction. `index` is
    that of the first.
    """
    if kafka_batch.header_of(batch).attributes & kafka_batch.CONTROL:
        return b"", 0
    records = kafka_batch.records_of(batch)
    if not records:
        return b"", 0
    publish_time_ms = pulsar_metadata.publish_time(tail)
    return pulsar_messages.batch_of(records, index, publish_time_ms), len(records)


def to_records(tail: bytes) -> Sequence[Record]:
    """What is in an entry, whoever sent it; nothing in what is for brokers only."""
    batch = kafka_form.batch_in(tail)
    if batch is None:
        message = PulsarMessage(tail)
        return () if message.is_marker else message.records()
    if kafka_batch.header_of(batch).attributes & kafka_batch.CONTROL:
        return ()
    return kafka_batch.records_of(batch)
