"""All fields of a message's metadata, for code that shows or converts entries.

It is not used on the hot path: `core.entry.pulsar.metadata` reads the few fields that dispatch
needs.

Invariant: an absent field stays distinct from a default where that has a meaning (`batch_size`,
keys, `deliver_at_time`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.frames import split_tail
from magnetar.wire.pulsar.strict import parse


class Metadata(Struct, frozen=True):
    """The metadata of a message, or of a batch (MessageMetadata in PulsarApi.proto)."""

    producer_name: str
    sequence_id: int
    publish_time: int
    """Milliseconds, like all times here."""
    properties: Mapping[str, str]
    event_time: int = 0
    deliver_at_time: int | None = None
    batch_size: int | None = None
    """Present: the payload is a batch, even if of one message."""
    highest_sequence_id: int = 0
    partition_key: str | None = None
    partition_key_is_base64: bool = False
    ordering_key: bytes | None = None
    null_value: bool = False
    compression: int = 0
    """The protocol's number: 0 none, 1 LZ4, 2 ZLIB, 3 ZSTD, 4 SNAPPY."""
    uncompressed_size: int = 0
    encryption_keys: tuple[str, ...] = ()
    """The names of the keys; the encrypted keys themselves are for consumers only."""
    schema_version: bytes | None = None
    uuid: str | None = None
    chunk_id: int = 0
    chunk_count: int = 0
    chunks_bytes: int = 0
    marker_type: int | None = None
    txn: tuple[int, int] | None = None
    replicated_from: str | None = None
    replicate_to: tuple[str, ...] = ()


class Entry(Struct, frozen=True):
    """A stored entry, taken apart; the payload as its producer compressed and encrypted it."""

    broker_timestamp: int | None
    index: int | None
    metadata: Metadata
    payload: bytes


def read(tail: bytes) -> Entry:
    """Decode a tail, sent or stored."""
    parts = split_tail(tail)
    broker = parse(pb.BrokerEntryMetadata, parts.broker or b"")
    metadata = _metadata(parse(pb.MessageMetadata, parts.metadata))
    return Entry(
        broker.broker_timestamp if broker.HasField("broker_timestamp") else None,
        broker.index if broker.HasField("index") else None,
        metadata,
        parts.payload,
    )


def _metadata(about: pb.MessageMetadata) -> Metadata:
    has = about.HasField
    in_txn = has("txnid_most_bits") and has("txnid_least_bits")
    return Metadata(
        producer_name=about.producer_name,
        sequence_id=about.sequence_id,
        publish_time=about.publish_time,
        properties={pair.key: pair.value for pair in about.properties},
        event_time=about.event_time,
        deliver_at_time=about.deliver_at_time if has("deliver_at_time") else None,
        batch_size=about.num_messages_in_batch if has("num_messages_in_batch") else None,
        highest_sequence_id=about.highest_sequence_id,
        partition_key=about.partition_key if has("partition_key") else None,
        partition_key_is_base64=about.partition_key_b64_encoded,
        ordering_key=about.ordering_key if has("ordering_key") else None,
        null_value=about.null_value,
        compression=int(about.compression),
        uncompressed_size=about.uncompressed_size,
        encryption_keys=tuple(key.key for key in about.encryption_keys),
        schema_version=about.schema_version if has("schema_version") else None,
        uuid=about.uuid if has("uuid") else None,
        chunk_id=about.chunk_id,
        chunk_count=about.num_chunks_from_msg,
        chunks_bytes=about.total_chunk_msg_size,
        marker_type=about.marker_type if has("marker_type") else None,
        txn=(about.txnid_most_bits, about.txnid_least_bits) if in_txn else None,
        replicated_from=about.replicated_from if has("replicated_from") else None,
        replicate_to=tuple(about.replicate_to),
    )
