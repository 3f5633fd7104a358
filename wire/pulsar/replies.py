"""Encoding of a broker's replies, other than receipts and messages, as whole frames.

Two rules of stock clients shape every function here. Required fields, and optional ones that
clients read without looking (`response` of lookups: `internal/lookup_service.go` of the Go client
panics without it; both halves of a transaction's id), are always present, zero or not. And a failed
request is answered in its own type of reply where it has one (`refusals.py`).

Invariant: each function returns one complete frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.varints import FIRST_BYTE, ONE_BYTE, varint
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.errors import code_of
from magnetar.wire.pulsar.frames import command_frame

UNASKED: Final = (1 << 64) - 1
"""The request id of commands that answer no request."""

Type = pb.BaseCommand.Type
FIELDS: Final[Mapping[int, str]] = {
    number: field.name for number, field in pb.BaseCommand.DESCRIPTOR.fields_by_number.items()
}


ACK_RESPONSE_HEAD: Final = b"\x08%b%b" % (
    varint(Type.ACK_RESPONSE),
    varint(Type.ACK_RESPONSE << 3 | 2),
)
"""The type, and the tag of the field with the command."""
REQUEST_ID_OF_ACK_RESPONSE: Final = b"\x30"


def frame(kind: pb.BaseCommand.Type, command: Any) -> bytes:
    """Encode a command as a frame. Its field number is the number of its type."""
    base = pb.BaseCommand(type=kind, **{FIELDS[kind]: command})
    return command_frame(base.SerializeToString())


def _message_id(position: events.MessageId) -> pb.MessageIdData:
    data = pb.MessageIdData(
        ledger_id=position.ledger_id & UNASKED, entry_id=position.entry_id & UNASKED
    )
    if position.partition >= 0:
        data.partition = position.partition
    if position.batch_index >= 0:
        data.batch_index = position.batch_index
    if position.batch_size:
        data.batch_size = position.batch_size
    return data


# -- Connection ------------------------------------------------------------------------------


def connected(
    server_version: str,
    protocol_version: int,
    message_bytes_max: int,
    features: events.Features = events.Features(),  # noqa: B008 -- frozen
) -> bytes:
    """CONNECTED."""
    return frame(
        Type.CONNECTED,
        pb.CommandConnected(
            server_version=server_version,
            protocol_version=protocol_version,
            max_message_size=message_bytes_max,
            feature_flags=pb.FeatureFlags(
                supports_auth_refresh=features.auth_refresh,
                supports_broker_entry_metadata=features.broker_entry_metadata,
                supports_partial_producer=features.partial_producer,
                supports_topic_watchers=features.topic_watchers,
                supports_get_partitioned_metadata_without_auto_creation=(
                    features.partitioned_metadata_without_creation
                ),
                supports_repl_dedup_by_lid_and_eid=features.replication_dedup_by_position,
                supports_topic_watcher_reconcile=features.topic_watcher_reconcile,
            ),
        ),
    )


def auth_challenge(server_version: str, protocol_version: int, method: str, data: bytes) -> bytes:
    """AUTH_CHALLENGE: requests authentication data, at first or again (PIP-30, PIP-55)."""
    challenge = pb.AuthData(auth_method_name=method, auth_data=data)
    return frame(
        Type.AUTH_CHALLENGE,
        pb.CommandAuthChallenge(
            server_version=server_version, challenge=challenge, protocol_version=protocol_version
        ),
    )


PING: Final = frame(Type.PING, pb.CommandPing())
PONG: Final = frame(Type.PONG, pb.CommandPong())


def success(request_id: int) -> bytes:
    """SUCCESS."""
    return frame(Type.SUCCESS, pb.CommandSuccess(request_id=request_id))


def error(request_id: int, code: pb.ServerError, text: str) -> bytes:
    """ERROR; not for every request, see `refusals.failure`."""
    return frame(Type.ERROR, pb.CommandError(request_id=request_id, error=code, message=text))


# -- Finding topics --------------------------------------------------------------------------


def partitioned_metadata(request_id: int, partitions: int) -> bytes:
    """The number of partitions; 0 for a topic without."""
    return frame(
        Type.PARTITIONED_METADATA_RESPONSE,
        pb.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            partitions=partitions,
            response=pb.CommandPartitionedTopicMetadataResponse.SUCCESS,
        ),
    )


class Address(Struct, frozen=True):
    """The addresses of a server, without and with TLS; empty for no such listener."""

    url: str = ""
    url_tls: str = ""


def lookup_connect(request_id: int, address: Address, through_service_url: bool) -> bytes:
    """The topic is served at the address, or at the one that the client has connected to."""
    reply = _lookup(request_id, address, pb.CommandLookupTopicResponse.CONNECT)
    reply.authoritative = True
    reply.proxy_through_service_url = through_service_url
    return frame(Type.LOOKUP_RESPONSE, reply)


def lookup_redirect(request_id: int, address: Address, authoritative: bool) -> bytes:
    """Redirect the lookup to another broker."""
    reply = _lookup(request_id, address, pb.CommandLookupTopicResponse.REDIRECT)
    reply.authoritative = authoritative
    return frame(Type.LOOKUP_RESPONSE, reply)


def _lookup(
    request_id: int, address: Address, response: pb.CommandLookupTopicResponse.LookupType
) -> pb.CommandLookupTopicResponse:
    reply = pb.CommandLookupTopicResponse(request_id=request_id, response=response)
    if address.url:
        reply.broker_service_url = address.url
    if address.url_tls:
        reply.broker_service_url_tls = address.url_tls
    return reply


def topics_of_namespace(
    request_id: int,
    topics: Iterable[str],
    topics_hash: str | None = None,
    filtered: bool = False,
    changed: bool = True,
) -> bytes:
    """These topics are there."""
    reply = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=request_id, topics=topics, filtered=filtered, changed=changed
    )
    if topics_hash is not None:
        reply.topics_hash = topics_hash
    return frame(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, reply)


def watch_topic_list_success(
    request_id: int, watcher_id: int, topics: Iterable[str], topics_hash: str
) -> bytes:
    """These topics match; updates follow."""
    reply = pb.CommandWatchTopicListSuccess(
        request_id=request_id, watcher_id=watcher_id, topic=topics, topics_hash=topics_hash
    )
    return frame(Type.WATCH_TOPIC_LIST_SUCCESS, reply)


def watch_topic_update(
    watcher_id: int, new: Iterable[str], gone: Iterable[str], topics_hash: str
) -> bytes:
    """These topics match now, and these do no more."""
    update = pb.CommandWatchTopicUpdate(
        watcher_id=watcher_id, new_topics=new, deleted_topics=gone, topics_hash=topics_hash
    )
    return frame(Type.WATCH_TOPIC_UPDATE, update)


# -- Producers -------------------------------------------------------------------------------


def producer_success(
    request_id: int,
    name: str,
    last_sequence_id: int = -1,
    schema_version: bytes = b"",
    topic_epoch: int | None = None,
    ready: bool = True,
) -> bytes:
    """The producer is attached; or, not ready, waits for its turn and hears this twice."""
    reply = pb.CommandProducerSuccess(
        request_id=request_id,
        producer_name=name,
        last_sequence_id=last_sequence_id,
        schema_version=schema_version,
        producer_ready=ready,
    )
    if topic_epoch is not None:
        reply.topic_epoch = topic_epoch
    return frame(Type.PRODUCER_SUCCESS, reply)


def send_error(producer_id: int, sequence_id: int, refusal: BrokerError) -> bytes:
    """A message is refused. Think of `errors.spares_connection` first."""
    return frame(
        Type.SEND_ERROR,
        pb.CommandSendError(
            producer_id=producer_id,
            sequence_id=sequence_id,
            error=code_of(refusal),
            message=str(refusal),
        ),
    )


def close_producer(producer_id: int, moved_to: Address | None = None) -> bytes:
    """Look the topic up again (or go straight there) and attach anew."""
    command = pb.CommandCloseProducer(producer_id=producer_id, request_id=UNASKED)
    return frame(Type.CLOSE_PRODUCER, _moved(command, moved_to))


# -- Consumers -------------------------------------------------------------------------------


def close_consumer(consumer_id: int, moved_to: Address | None = None) -> bytes:
    """Look the topic up again (or go straight there) and attach anew."""
    command = pb.CommandCloseConsumer(consumer_id=consumer_id, request_id=UNASKED)
    return frame(Type.CLOSE_CONSUMER, _moved(command, moved_to))


def _moved(command: Any, moved_to: Address | None) -> Any:
    if moved_to and moved_to.url:
        command.assigned_broker_service_url = moved_to.url
    if moved_to and moved_to.url_tls:
        command.assigned_broker_service_url_tls = moved_to.url_tls
    return command


def ack_response(
    consumer_id: int,
    request_id: int,
    refusal: BrokerError | None = None,
    txn: events.Txn | None = None,
) -> bytes:
    """Acknowledged; or not, with a text that is never empty, because Go looks at that alone."""
    reply = pb.CommandAckResponse(consumer_id=consumer_id, request_id=request_id)
    if txn is not None:
        reply.txnid_most_bits, reply.txnid_least_bits = txn
    if refusal is not None:
        reply.error = code_of(refusal)
        reply.message = str(refusal) or type(refusal).__name__
    return frame(Type.ACK_RESPONSE, reply)


def ack_responses(consumer_id: int, request_ids: Iterable[int], txn: events.Txn) -> bytes:
    """Many at once: acknowledged in a transaction. Written by hand, but for what is in each: the
    request id is the last field, and all but its first byte the same for up to 128 ids.
    """
    reply = pb.CommandAckResponse(
        consumer_id=consumer_id, txnid_most_bits=txn[0], txnid_least_bits=txn[1]
    )
    same = reply.SerializeToString() + REQUEST_ID_OF_ACK_RESPONSE
    around: dict[int, tuple[bytes, Sequence[bytes], bytes]] = {}
    pieces: list[bytes] = []
    for request_id in request_ids:
        high = request_id >> 7
        found = around.get(high)
        if found is None:
            rest, firsts = (varint(high), FIRST_BYTE) if high else (b"", ONE_BYTE)
            inner = same + firsts[0] + rest
            head = command_frame(ACK_RESPONSE_HEAD + varint(len(inner)) + inner)
            found = around[high] = head[: -1 - len(rest)], firsts, rest
        pieces += (found[0], found[1][request_id & 127], found[2])
    return b"".join(pieces)


def active_consumer_change(consumer_id: int, is_active: bool) -> bytes:
    """For Failover: whether the consumer is now the active one."""
    return frame(
        Type.ACTIVE_CONSUMER_CHANGE,
        pb.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=is_active),
    )


def reached_end_of_topic(consumer_id: int) -> bytes:
    """Nothing will follow. For clients whose version begins with Pulsar-Java alone: all others
    take it for nonsense and drop the connection.
    """
    return frame(Type.REACHED_END_OF_TOPIC, pb.CommandReachedEndOfTopic(consumer_id=consumer_id))


def last_message_id(
    request_id: int, last: events.MessageId, mark_delete: events.MessageId
) -> bytes:
    """The topic ends there, and everything up to the other one is acknowledged."""
    return frame(
        Type.GET_LAST_MESSAGE_ID_RESPONSE,
        pb.CommandGetLastMessageIdResponse(
            request_id=request_id,
            last_message_id=_message_id(last),
            consumer_mark_delete_position=_message_id(mark_delete),
        ),
    )


class ConsumerFigures(Struct, frozen=True):
    """The statistics in CONSUMER_STATS; rates are per second."""

    messages_out_rate: float
    bytes_out_rate: float
    redeliver_rate: float
    ack_rate: float
    expired_rate: float
    consumer_name: str
    permits: int
    unacked: int
    blocked_on_unacked: bool
    address: str
    connected_since: str
    subscription_type: str
    backlog: int


def consumer_stats(request_id: int, figures: ConsumerFigures) -> bytes:
    """How the consumer is doing."""
    return frame(
        Type.CONSUMER_STATS_RESPONSE,
        pb.CommandConsumerStatsResponse(
            request_id=request_id,
            msg_rate_out=figures.messages_out_rate,
            msg_throughput_out=figures.bytes_out_rate,
            msg_rate_redeliver=figures.redeliver_rate,
            consumer_name=figures.consumer_name,
            available_permits=max(figures.permits, 0),
            unacked_messages=figures.unacked,
            blocked_consumer_on_unacked_msgs=figures.blocked_on_unacked,
            address=figures.address,
            connected_since=figures.connected_since,
            type=figures.subscription_type,
            msg_rate_expired=figures.expired_rate,
            msg_backlog=figures.backlog,
            message_ack_rate=figures.ack_rate,
        ),
    )


def schema_found(request_id: int, schema: events.SchemaInfo, version: bytes) -> bytes:
    """The topic has this schema, under that version."""
    pairs = [pb.KeyValue(key=key, value=value) for key, value in schema.properties.items()]
    return frame(
        Type.GET_SCHEMA_RESPONSE,
        pb.CommandGetSchemaResponse(
            request_id=request_id,
            schema=pb.Schema(
                name=schema.name,
                type=pb.Schema.Type.Name(schema.kind),
                schema_data=schema.data,
                properties=pairs,
            ),
            schema_version=version,
        ),
    )


def schema_taken(request_id: int, version: bytes = b"") -> bytes:
    """The schema is accepted. An empty version means that the topic has no schema to refer to."""
    return frame(
        Type.GET_OR_CREATE_SCHEMA_RESPONSE,
        pb.CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=version),
    )


# -- Transactions ----------------------------------------------------------------------------


def coordinator_connected(request_id: int) -> bytes:
    """The coordinator is here."""
    reply = pb.CommandTcClientConnectResponse(request_id=request_id)
    return frame(Type.TC_CLIENT_CONNECT_RESPONSE, reply)


def new_txn(request_id: int, txn: events.Txn) -> bytes:
    """A transaction has begun. Both halves of the id are there, even 0: Go reads them unasked."""
    return _of_txn(Type.NEW_TXN_RESPONSE, pb.CommandNewTxnResponse, request_id, txn)


def partitions_added(request_id: int, txn: events.Txn) -> bytes:
    """Messages may be published to the topics."""
    kind = Type.ADD_PARTITION_TO_TXN_RESPONSE
    return _of_txn(kind, pb.CommandAddPartitionToTxnResponse, request_id, txn)


def subscriptions_added(request_id: int, txn: events.Txn) -> bytes:
    """Messages may be acknowledged in the subscriptions."""
    kind = Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE
    return _of_txn(kind, pb.CommandAddSubscriptionToTxnResponse, request_id, txn)


def txn_ended(request_id: int, txn: events.Txn) -> bytes:
    """Every topic and subscription has the outcome."""
    return _of_txn(Type.END_TXN_RESPONSE, pb.CommandEndTxnResponse, request_id, txn)


def _of_txn(kind: pb.BaseCommand.Type, reply: type[Any], request_id: int, txn: events.Txn) -> bytes:
    most, least = txn
    return frame(kind, reply(request_id=request_id, txnid_most_bits=most, txnid_least_bits=least))
