"""The other end of a connection: what clients send, and how they read what a broker sends.

All of it by protobuf, never by the code under test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack, unpack_from
from typing import Any, NamedTuple

from magnetar.core.kernel.checksum import crc32c
from magnetar.wire.pulsar import commands_pb2 as pb

EARLIEST = (1 << 64) - 1
FIELDS = {
    number: field.name for number, field in pb.BaseCommand.DESCRIPTOR.fields_by_number.items()
}


def frame(kind: str, message: Any, tail: bytes = b"") -> bytes:
    """A frame of any kind: `frame("FLOW", pb.CommandFlow(...))`."""
    number = pb.BaseCommand.Type.Value(kind)
    command = pb.BaseCommand(type=number, **{FIELDS[number]: message}).SerializeToString()
    return pack(">II", len(command) + 4 + len(tail), len(command)) + command + tail


# -- what clients say --------------------------------------------------------------------------


def connect(**fields: Any) -> bytes:
    flags = pb.FeatureFlags(supports_auth_refresh=True, supports_broker_entry_metadata=True)
    said = {
        "client_version": "Pulsar-CPP-v4.2.0",
        "auth_method_name": "none",
        "protocol_version": 20,
        "feature_flags": flags,
    }
    return frame("CONNECT", pb.CommandConnect(**{**said, **fields}))


def ping() -> bytes:
    return frame("PING", pb.CommandPing())


def pong() -> bytes:
    return frame("PONG", pb.CommandPong())


def lookup(request_id: int, topic: str, **fields: Any) -> bytes:
    return frame("LOOKUP", pb.CommandLookupTopic(request_id=request_id, topic=topic, **fields))


def partitioned_metadata(request_id: int, topic: str, **fields: Any) -> bytes:
    message = pb.CommandPartitionedTopicMetadata(request_id=request_id, topic=topic, **fields)
    return frame("PARTITIONED_METADATA", message)


def topics_of_namespace(request_id: int, namespace: str, **fields: Any) -> bytes:
    message = pb.CommandGetTopicsOfNamespace(request_id=request_id, namespace=namespace, **fields)
    return frame("GET_TOPICS_OF_NAMESPACE", message)


def watch_topics(
    request_id: int, watcher_id: int, namespace: str, pattern: str, **fields: Any
) -> bytes:
    message = pb.CommandWatchTopicList(
        request_id=request_id,
        watcher_id=watcher_id,
        namespace=namespace,
        topics_pattern=pattern,
        **fields,
    )
    return frame("WATCH_TOPIC_LIST", message)


def producer(request_id: int, producer_id: int, topic: str, **fields: Any) -> bytes:
    message = pb.CommandProducer(
        request_id=request_id, producer_id=producer_id, topic=topic, **fields
    )
    return frame("PRODUCER", message)


def close_producer(request_id: int, producer_id: int) -> bytes:
    message = pb.CommandCloseProducer(request_id=request_id, producer_id=producer_id)
    return frame("CLOSE_PRODUCER", message)


def metadata(sequence_id: int = 0, **fields: Any) -> pb.MessageMetadata:
    said = {"producer_name": "p", "sequence_id": sequence_id, "publish_time": 1_700_000_000_000}
    return pb.MessageMetadata(**{**said, **fields})


def tail(payload: bytes, about: pb.MessageMetadata | None = None, checked: bool = True) -> bytes:
    """What follows the command of a SEND: checksum, metadata, payload."""
    encoded = (about or metadata()).SerializeToString()
    body = pack(">I", len(encoded)) + encoded + payload
    return b"\x0e\x01" + pack(">I", crc32c(body)) + body if checked else body


def send(producer_id: int, sequence_id: int, payload: bytes = b"hello", **fields: Any) -> bytes:
    """One message as stock clients send it. `about` is its metadata, `checked` its checksum."""
    about = fields.pop("about", None) or metadata(sequence_id)
    checked = fields.pop("checked", True)
    message = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id, **fields)
    return frame("SEND", message, tail(payload, about, checked))


def batch(messages: Sequence[bytes]) -> bytes:
    """The payload of an uncompressed batch."""
    parts = []
    for message in messages:
        single = pb.SingleMessageMetadata(payload_size=len(message)).SerializeToString()
        parts.append(pack(">I", len(single)) + single + message)
    return b"".join(parts)


def send_batch(producer_id: int, sequence_id: int, messages: Sequence[bytes]) -> bytes:
    """Several messages as one entry."""
    last = sequence_id + len(messages) - 1
    about = metadata(sequence_id, num_messages_in_batch=len(messages), highest_sequence_id=last)
    return send(
        producer_id,
        sequence_id,
        batch(messages),
        about=about,
        num_messages=len(messages),
        highest_sequence_id=last,
    )


def tc_connect(request_id: int, coordinator: int = 0) -> bytes:
    message = pb.CommandTcClientConnectRequest(request_id=request_id, tc_id=coordinator)
    return frame("TC_CLIENT_CONNECT_REQUEST", message)


def new_txn(request_id: int, ttl_ms: int = 60_000, coordinator: int = 0) -> bytes:
    message = pb.CommandNewTxn(request_id=request_id, txn_ttl_millis=ttl_ms, tc_id=coordinator)
    return frame("NEW_TXN", message)


def _txn(txn: tuple[int, int]) -> dict[str, int]:
    return {"txnid_most_bits": txn[0], "txnid_least_bits": txn[1]}


def add_partitions(request_id: int, txn: tuple[int, int], *topics: str) -> bytes:
    message = pb.CommandAddPartitionToTxn(request_id=request_id, partitions=topics, **_txn(txn))
    return frame("ADD_PARTITION_TO_TXN", message)


def add_subscription(request_id: int, txn: tuple[int, int], topic: str, *names: str) -> bytes:
    message = pb.CommandAddSubscriptionToTxn(request_id=request_id, **_txn(txn))
    for name in names:
        message.subscription.add(topic=topic, subscription=name)
    return frame("ADD_SUBSCRIPTION_TO_TXN", message)


def end_txn(request_id: int, txn: tuple[int, int], *, commit: bool = True) -> bytes:
    action = pb.COMMIT if commit else pb.ABORT
    message = pb.CommandEndTxn(request_id=request_id, txn_action=action, **_txn(txn))
    return frame("END_TXN", message)


def send_in(txn: tuple[int, int], producer_id: int, sequence_id: int, payload: bytes) -> bytes:
    """A message of a transaction."""
    about = metadata(sequence_id, **_txn(txn))
    return send(producer_id, sequence_id, payload, about=about, **_txn(txn))


def ack_in(
    txn: tuple[int, int], request_id: int, consumer_id: int, *ids: pb.MessageIdData, **fields: Any
) -> bytes:
    """An acknowledgement in a transaction."""
    said: dict[str, Any] = {"ack_type": pb.CommandAck.INDIVIDUAL, **_txn(txn), **fields}
    message = pb.CommandAck(consumer_id=consumer_id, message_id=ids, request_id=request_id, **said)
    return frame("ACK", message)


def subscribe(
    request_id: int, consumer_id: int, topic: str, subscription: str, **fields: Any
) -> bytes:
    said = {"sub_type": pb.CommandSubscribe.EXCLUSIVE, **fields}
    message = pb.CommandSubscribe(
        request_id=request_id,
        consumer_id=consumer_id,
        topic=topic,
        subscription=subscription,
        **said,
    )
    return frame("SUBSCRIBE", message)


def close_consumer(request_id: int, consumer_id: int) -> bytes:
    message = pb.CommandCloseConsumer(request_id=request_id, consumer_id=consumer_id)
    return frame("CLOSE_CONSUMER", message)


def unsubscribe(request_id: int, consumer_id: int, force: bool = False) -> bytes:
    message = pb.CommandUnsubscribe(request_id=request_id, consumer_id=consumer_id, force=force)
    return frame("UNSUBSCRIBE", message)


def flow(consumer_id: int, permits: int) -> bytes:
    return frame("FLOW", pb.CommandFlow(consumer_id=consumer_id, message_permits=permits))


def message_id(ledger_id: int, entry_id: int, **fields: Any) -> pb.MessageIdData:
    return pb.MessageIdData(ledger_id=ledger_id & EARLIEST, entry_id=entry_id & EARLIEST, **fields)


def ack(consumer_id: int, *ids: tuple[int, int] | pb.MessageIdData, **fields: Any) -> bytes:
    """Individual acknowledgement of ids, or cumulative: `cumulative=True`."""
    cumulative = fields.pop("cumulative", False)
    message = pb.CommandAck(
        consumer_id=consumer_id,
        ack_type=pb.CommandAck.CUMULATIVE if cumulative else pb.CommandAck.INDIVIDUAL,
        message_id=[
            each if isinstance(each, pb.MessageIdData) else message_id(*each) for each in ids
        ],
        **fields,
    )
    return frame("ACK", message)


def redeliver(consumer_id: int, *ids: tuple[int, int], **fields: Any) -> bytes:
    message = pb.CommandRedeliverUnacknowledgedMessages(
        consumer_id=consumer_id, message_ids=[message_id(*each) for each in ids], **fields
    )
    return frame("REDELIVER_UNACKNOWLEDGED_MESSAGES", message)


def seek(request_id: int, consumer_id: int, **fields: Any) -> bytes:
    message = pb.CommandSeek(request_id=request_id, consumer_id=consumer_id, **fields)
    return frame("SEEK", message)


def get_last_message_id(request_id: int, consumer_id: int) -> bytes:
    message = pb.CommandGetLastMessageId(request_id=request_id, consumer_id=consumer_id)
    return frame("GET_LAST_MESSAGE_ID", message)


def consumer_stats(request_id: int, consumer_id: int) -> bytes:
    message = pb.CommandConsumerStats(request_id=request_id, consumer_id=consumer_id)
    return frame("CONSUMER_STATS", message)


# -- how clients read --------------------------------------------------------------------------


class ReceivedFrame(NamedTuple):
    """One frame from the broker; `body` is the command's own message."""

    kind: str
    body: Any
    tail: bytes


def parse_frames(data: bytes | Sequence[bytes]) -> list[ReceivedFrame]:
    """All frames in what a broker sent, which must end with a whole one."""
    return list(_frames(data if isinstance(data, bytes) else b"".join(data)))


def _frames(data: bytes) -> Iterator[ReceivedFrame]:
    at = 0
    while at < len(data):
        size, command_bytes = unpack_from(">II", data, at)
        end, behind = at + 4 + size, at + 8 + command_bytes
        assert end <= len(data), "the last frame is cut short"
        assert behind <= end, "the command is longer than its frame"
        base = pb.BaseCommand.FromString(data[at + 8 : behind])
        assert base.IsInitialized(), base.FindInitializationErrors()
        kind = pb.BaseCommand.Type.Name(base.type)
        assert [field.number for field, _ in base.ListFields()] == [1, base.type]
        yield ReceivedFrame(kind, getattr(base, FIELDS[base.type]), data[behind:end])
        at = end


class Message(NamedTuple):
    """The tail of a MESSAGE, taken apart as a careful client does."""

    broker: pb.BrokerEntryMetadata | None
    metadata: pb.MessageMetadata
    payload: bytes


def open_tail(data: bytes) -> Message:
    """Check the checksum, which must be there, and decode the metadata."""
    broker = None
    if data.startswith(b"\x0e\x02"):
        (size,) = unpack_from(">I", data, 2)
        broker = pb.BrokerEntryMetadata.FromString(data[6 : 6 + size])
        data = data[6 + size :]
    assert data.startswith(b"\x0e\x01"), "Go takes a message without checksum for corrupted"
    checksum, size = unpack_from(">II", data, 2)
    assert checksum == crc32c(data[6:])
    return Message(broker, pb.MessageMetadata.FromString(data[10 : 10 + size]), data[10 + size :])
