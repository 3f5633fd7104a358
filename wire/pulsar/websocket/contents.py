"""Messages between their two forms: the tail of a SEND or a MESSAGE, and a JSON document. Pure.

A payload that its producer has encrypted is passed through as it is, and with it what is needed to
decrypt it: only the ends have keys.

Invariant: what cannot be read raises `Corrupted`, and takes no more memory than its size says.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from struct import Struct as Layout
from typing import Any, Final, NamedTuple

import cramjam
from msgspec import UNSET, Struct, UnsetType, json

from magnetar.core.entry.pulsar.compression import CODECS as READABLE
from magnetar.core.entry.pulsar.compression import SIZE_BYTES_MAX, decompress
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.dates import iso_date
from magnetar.core.kernel.errors import Corrupted, Invalid, WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.frames import CHECKSUM_PART, SIZE, split_tail
from magnetar.wire.pulsar.strict import parse
from magnetar.wire.pulsar.websocket.documents import Delivered, Encryption, EncryptionKey, Published
from magnetar.wire.pulsar.websocket.endpoint import CODECS

_SIZE: Final = Layout(">I")
_NAMES: Final = {number: name for name, number in CODECS.items()}
_COMPRESS: Final[Mapping[int, Callable[[bytes], Any]]] = {
    1: lambda payload: cramjam.lz4.compress_block(payload, store_size=False),
    2: zlib.compress,
    3: cramjam.zstd.compress,
    4: cramjam.snappy.compress_raw,
}
"""By the protocol's number of the codec."""
COMPRESSED_BYTES_MAX: Final[Mapping[int, int]] = {1: 4 << 20, 2: 256 << 10, 3: 2 << 20, 4: 4 << 20}
"""Of a payload: what takes some 10 ms of the loop. A longer one is stored as it is."""
NO_CLUSTER: Final = "__local__"
"""As Java's `disableReplication` says it, instead of clusters."""
BATCH_MAX: Final = 1 << 16
"""Messages of a batch: compressed, a few bytes may claim to be millions."""
KEPT_ENCRYPTED: Final = (
    "encryption_algo",
    "encryption_param",
    "compression",
    "uncompressed_size",
    "num_messages_in_batch",
    "partition_key",
    "partition_key_b64_encoded",
    "ordering_key",
    "event_time",
)
"""What is passed on with an entry that is encrypted, so that the ends can read it."""
MESSAGE_BYTES: Final = 700
PROPERTY_BYTES: Final = 120
"""The memory of a message that waits, and of a property, beside their texts."""
EXPANSION_MAX: Final = 2
"""How many times the longest message an entry may be, decompressed. A few bytes may claim 128 MiB,
and a consumer is sent a thousand entries.
"""
TIMES_MAX: Final = (1 << 63) - 1


class Position(NamedTuple):
    """Where a message is: its partition (-1 for none), ledger, entry, and place in its batch."""

    partition: int
    ledger_id: int
    entry_id: int
    batch_index: int = -1
    batch_size: int = 0


def position_text(position: Position) -> str:
    """A message id in base64, as clients hand it back."""
    data = pb.MessageIdData(ledger_id=position.ledger_id, entry_id=position.entry_id)
    if position.partition >= 0:
        data.partition = position.partition
    if position.batch_index >= 0:
        data.batch_index = position.batch_index
        data.batch_size = position.batch_size
    return base64(data.SerializeToString())


def position_of(text: str) -> Position:
    """The same back; `Invalid` if it is none."""
    try:
        data = parse(pb.MessageIdData, base64_decoded(text))
    except WireError as error:
        raise Invalid("that is no message id") from error
    if data.batch_index >= BATCH_MAX:
        raise Invalid("that is no message id of a batch")
    return Position(
        data.partition, data.ledger_id, data.entry_id, data.batch_index, data.batch_size
    )


def base64_decoded(text: str) -> bytes:
    """The bytes of a text, which may lack all `=` at its end, as for Java's decoder."""
    if not text.endswith("="):
        text += "=" * (-len(text) % 4)
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid(f"Invalid Base64 error={error}") from error


def base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


# -- from a client ----------------------------------------------------------------------------


class ProducerWays(Struct, frozen=True):
    """How the messages of one producer are made."""

    name: str
    codec: pb.CompressionType = pb.NO_COMPRESSION
    encryption_keys: Mapping[str, EncryptionKey] = {}
    """Those of a client that encrypts itself."""


def payload_of(message: Published) -> bytes:
    """The bytes of its payload; `Invalid` if they are none."""
    if message.payload is None:
        raise Invalid("there is no payload")
    return base64_decoded(message.payload)


def tail_of(
    message: Published, payload: bytes, ways: ProducerWays, sequence_id: int, now_ms: int
) -> bytes:
    """What follows the command of a SEND. Raises `Invalid`."""
    about = pb.MessageMetadata(
        producer_name=ways.name, sequence_id=sequence_id, publish_time=now_ms
    )
    for name, value in (message.properties or {}).items():
        about.properties.add(key=name, value=value)
    if message.key is not None:
        about.partition_key = message.key
    if message.disable_replication:
        about.replicate_to.append(NO_CLUSTER)
    else:
        about.replicate_to.extend(message.replication_clusters or ())
    if message.event_time is not None:
        about.event_time = _milliseconds(message.event_time)
    if message.deliver_after_ms > 0:
        about.deliver_at_time = min(now_ms + message.deliver_after_ms, TIMES_MAX)
    elif message.deliver_at > 0:
        about.deliver_at_time = min(message.deliver_at, TIMES_MAX)
    if ways.encryption_keys:
        _encrypted(about, message, ways.encryption_keys)
    elif ways.codec and len(payload) <= COMPRESSED_BYTES_MAX[ways.codec]:
        about.compression = ways.codec
        about.uncompressed_size = len(payload)
        payload = bytes(_COMPRESS[ways.codec](payload))
    return _sealed(about, payload)


def _sealed(about: pb.MessageMetadata, payload: bytes) -> bytes:
    encoded = about.SerializeToString()
    checked = b"".join((SIZE.pack(len(encoded)), encoded, payload))
    return CHECKSUM_PART + SIZE.pack(crc32c(checked)) + checked


def encrypted_tail_of(
    entry: OpenedEntry, name: str, properties: Mapping[str, str], sequence_id: int, now_ms: int
) -> bytes:
    """What follows the command of a SEND of an entry that is encrypted, with more properties."""
    was = entry.about
    about = pb.MessageMetadata(producer_name=name, sequence_id=sequence_id, publish_time=now_ms)
    said = {pair.key: pair.value for pair in was.properties}
    for key, value in {**properties, **said}.items():
        about.properties.add(key=key, value=value)
    about.encryption_keys.extend(was.encryption_keys)
    for field in KEPT_ENCRYPTED:
        if was.HasField(field):
            setattr(about, field, getattr(was, field))
    return _sealed(about, entry.payload)


def _encrypted(
    about: pb.MessageMetadata, message: Published, keys: Mapping[str, EncryptionKey]
) -> None:
    for name, key in keys.items():
        one = about.encryption_keys.add(key=name, value=base64_decoded(key.key_value or ""))
        for field, value in (key.metadata or {}).items():
            one.metadata.add(key=field, value=value)
    about.encryption_param = base64_decoded(message.encryption_param or "")
    codec = CODECS.get(message.compression_type or "NONE")
    if codec is None:
        raise Invalid(f"Invalid compressionType {message.compression_type}")
    if codec:
        about.compression = codec
        about.uncompressed_size = min(max(message.uncompressed_message_size or 0, 0), (1 << 32) - 1)


def _milliseconds(text: str) -> int:
    """A time of ISO 8601 with an offset; `Invalid` if it is none."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError
        return max(round(found.timestamp() * 1000), 0)
    except (ValueError, OverflowError) as error:
        form = "ISO 8601 with an offset, such as 2026-11-29T20:00:00Z"
        raise Invalid(f"{text[:100]!r} is not a time: {form}") from error


# -- to a client ------------------------------------------------------------------------------


class OpenedEntry(NamedTuple):
    """What an entry says of itself, and its payload as it is stored."""

    about: pb.MessageMetadata
    payload: bytes


def read(tail: bytes) -> OpenedEntry:
    """Raises `Corrupted`."""
    try:
        parts = split_tail(tail)
        return OpenedEntry(parse(pb.MessageMetadata, parts.metadata), bytes(parts.payload))
    except WireError as error:
        raise Corrupted(str(error)) from error


class ReceivedMessage(NamedTuple):
    """A message, and where it is."""

    position: Position
    document: Delivered


def size_of(message: ReceivedMessage) -> int:
    """Roughly the memory that a message takes."""
    document = message.document
    size = MESSAGE_BYTES + len(document.payload)
    for name, value in document.properties.items():
        size += PROPERTY_BYTES + len(name) + len(value)
    if document.encryption_context is not UNSET:
        size += len(json.encode(document.encryption_context))
    return size


class TooLong(Exception):
    """An entry is longer than a WebSocket's may be, once it is decompressed."""


def received(
    tail: bytes, at: Position, redeliveries: int, acked: int = 0, size_max: int = SIZE_BYTES_MAX
) -> Iterator[ReceivedMessage]:
    """The messages of an entry, without those of a batch that were acknowledged or compacted away.
    `acked` is a mask of the places that were. Raises `Corrupted`, and `TooLong` if decompressed it
    has more than `size_max` bytes.
    """
    about, stored = read(tail)
    common = Delivered("", "", {}, _date(about.publish_time), redeliveries)
    if about.encryption_keys:
        yield ReceivedMessage(at, _document(common, at, about, stored, _encryption(about)))
        return
    if about.compression and size_max < about.uncompressed_size <= SIZE_BYTES_MAX:
        raise TooLong(f"{about.uncompressed_size} bytes")
    payload = decompress(stored, int(about.compression), about.uncompressed_size)
    if not about.HasField("num_messages_in_batch"):
        yield ReceivedMessage(at, _document(common, at, about, payload))
        return
    count = about.num_messages_in_batch
    if count > BATCH_MAX:
        raise Corrupted(f"a batch claims to have {count} messages")
    for place, one, value in _batch(payload, count):
        if one.compacted_out or acked >> place & 1:
            continue
        each = at._replace(batch_index=place, batch_size=count)
        yield ReceivedMessage(each, _document(common, each, one, value))


def _batch(payload: bytes, count: int) -> Iterator[tuple[int, pb.SingleMessageMetadata, bytes]]:
    at = 0
    for place in range(count):
        if at + 4 > len(payload):
            raise Corrupted("a batch has fewer messages than it says")
        begin = at + 4
        end = begin + _SIZE.unpack_from(payload, at)[0]
        if end > len(payload):
            raise Corrupted("a message is longer than its batch")
        try:
            one = parse(pb.SingleMessageMetadata, payload[begin:end])
        except WireError as error:
            raise Corrupted(str(error)) from error
        at = end + one.payload_size
        if not end <= at <= len(payload):
            raise Corrupted("a message is longer than its batch")
        yield place, one, payload[end:at]


def _document(
    common: Delivered,
    at: Position,
    about: pb.MessageMetadata | pb.SingleMessageMetadata,
    value: bytes,
    encryption: Encryption | UnsetType = UNSET,
) -> Delivered:
    has_key = about.HasField("partition_key") and not about.null_partition_key
    return Delivered(
        position_text(at),
        base64(value),
        {pair.key: pair.value for pair in about.properties},
        common.publish_time,
        common.redelivery_count,
        _date(about.event_time) if about.event_time else UNSET,
        about.partition_key if has_key else UNSET,
        encryption,
    )


def _date(ms: int) -> str:
    return (iso_date(ms) or "1970-01-01T00:00:00.000+00:00").replace("+00:00", "Z")


def _encryption(about: pb.MessageMetadata) -> Encryption:
    keys = {
        each.key: EncryptionKey(
            base64(each.value), {pair.key: pair.value for pair in each.metadata}
        )
        for each in about.encryption_keys
    }
    codec = int(about.compression)
    return Encryption(
        keys,
        base64(about.encryption_param),
        about.encryption_algo or None,
        _NAMES.get(about.compression) if codec in READABLE else None,
        about.uncompressed_size if codec else None,
        about.num_messages_in_batch if about.HasField("num_messages_in_batch") else None,
    )
