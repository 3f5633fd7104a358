"""Decodes commands from protobuf to events, except for the hot forms, which `hot` decodes.

`decode` accepts every command of PulsarApi.proto that a client may send, the hot ones too: a valid
encoding that `hot` does not recognize is decoded here, with the same result. Commands that only a
broker sends are refused.

Invariant: decoding any bytes raises nothing but `WireError`; no protobuf object is returned.
(Numbers become enums unchecked: protobuf drops those that its enums do not have.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, parts
from magnetar.wire.pulsar.hot import echo_of
from magnetar.wire.pulsar.strict import parse


class Send(Struct, frozen=True):
    """A SEND command; the wire takes its tail, the message itself."""

    producer_id: int
    sequence: bytes
    sequence_id: int
    count: int = 1
    chunks: bool = False
    marker: bool = False
    txn: events.Txn | None = None
    origin: events.MessageId | None = None


def decode(command: bytes) -> events.Event | Send:
    """Decode a command."""
    base = parse(pb.BaseCommand, command)
    known = DECODERS.get(base.type)
    if known is None:
        raise WireError(f"{pb.BaseCommand.Type.Name(base.type)} is not for clients to send")
    field, decoder = known
    if not base.HasField(field):
        raise WireError(f"{field} is announced but absent")
    return decoder(getattr(base, field))


# -- Hot commands, in whatever encoding ----------------------------------------------------------


def _send(command: pb.CommandSend) -> Send:
    highest = command.highest_sequence_id if command.HasField("highest_sequence_id") else None
    return Send(
        command.producer_id,
        echo_of(command.sequence_id, highest),
        command.sequence_id,
        max(command.num_messages, 1),
        command.is_chunk,
        command.marker,
        parts.txn_if_any(command),
        parts.message_id(command.message_id) if command.HasField("message_id") else None,
    )


def _ack(command: pb.CommandAck) -> events.Acks:
    cumulative = command.ack_type == pb.CommandAck.CUMULATIVE
    ranges: list[tuple[int, int, int]] = []
    partial: list[tuple[int, int, int, int]] = []
    for data in command.message_id:
        ledger, entry = parts.signed(data.ledger_id), parts.signed(data.entry_id)
        mask = parts.mask_of(data.ack_set)
        if mask:
            partial.append((ledger, entry, mask, data.batch_size))
        elif not cumulative and ranges and ranges[-1][0] == ledger and ranges[-1][2] == entry - 1:
            ranges[-1] = (ledger, ranges[-1][1], entry)
        else:
            ranges.append((ledger, entry, entry))
    return events.Acks(
        command.consumer_id,
        cumulative,
        ranges,
        partial,
        command.request_id if command.HasField("request_id") else None,
        parts.txn_if_any(command),
        int(command.validation_error) if command.HasField("validation_error") else None,
        {pair.key: parts.signed(pair.value) for pair in command.properties} or None,
    )


def _flow(command: pb.CommandFlow) -> events.Flow:
    return events.Flow(command.consumer_id, command.message_permits)


# -- Connection and lookup -----------------------------------------------------------------------


LEGACY_METHODS: Final = {0: "none", 1: "ycav1", 2: "athenz"}
"""The enum `auth_method` of clients older than `auth_method_name` (CommandConnect)."""


def _connect(command: pb.CommandConnect) -> events.Connect:
    method = command.auth_method_name or LEGACY_METHODS[command.auth_method]
    to_broker = command.proxy_to_broker_url if command.HasField("proxy_to_broker_url") else None
    flags = command.feature_flags
    return events.Connect(
        client_version=command.client_version,
        protocol_version=command.protocol_version,
        auth_method=method,
        auth_data=command.auth_data,
        features=events.Features(
            flags.supports_auth_refresh,
            flags.supports_broker_entry_metadata,
            flags.supports_partial_producer,
            flags.supports_topic_watchers,
            flags.supports_get_partitioned_metadata_without_auto_creation,
            flags.supports_repl_dedup_by_lid_and_eid,
            flags.supports_topic_watcher_reconcile,
            flags.supports_scalable_topics,
            flags.supports_tc_metadata_discovery,
        ),
        proxy_to_broker_url=to_broker,
        original_user=parts.original_user(command),
        proxy_version=command.proxy_version,
    )


def _auth_response(command: pb.CommandAuthResponse) -> events.AuthResponse:
    return events.AuthResponse(
        command.client_version,
        command.protocol_version,
        command.response.auth_method_name,
        command.response.auth_data,
    )


def _lookup(command: pb.CommandLookupTopic) -> events.Lookup:
    return events.Lookup(
        command.request_id,
        command.topic,
        command.authoritative,
        command.advertised_listener_name,
        parts.original_user(command),
        parts.mapping(command.properties),
    )


def _partitioned_metadata(
    command: pb.CommandPartitionedTopicMetadata,
) -> events.PartitionedMetadata:
    return events.PartitionedMetadata(
        command.request_id,
        command.topic,
        command.metadata_auto_creation_enabled,
        parts.original_user(command),
    )


def _topics_of_namespace(command: pb.CommandGetTopicsOfNamespace) -> events.TopicsOfNamespace:
    return events.TopicsOfNamespace(
        command.request_id,
        command.namespace,
        events.TopicsMode(command.mode),
        command.topics_pattern if command.HasField("topics_pattern") else None,
        command.topics_hash if command.HasField("topics_hash") else None,
        parts.mapping(command.properties),
    )


# -- Producers and consumers -----------------------------------------------------------------


def _producer(command: pb.CommandProducer) -> events.Producer:
    return events.Producer(
        request_id=command.request_id,
        producer_id=command.producer_id,
        topic=command.topic,
        name=command.producer_name,
        name_is_users=command.user_provided_producer_name,
        epoch=command.epoch,
        access_mode=events.AccessMode(command.producer_access_mode),
        topic_epoch=command.topic_epoch if command.HasField("topic_epoch") else None,
        encrypted=command.encrypted,
        transactional=command.txn_enabled,
        initial_subscription=command.initial_subscription_name,
        metadata=parts.mapping(command.metadata),
        schema=parts.schema(command),
    )


def _subscribe(command: pb.CommandSubscribe) -> events.Subscribe:
    start = command.start_message_id if command.HasField("start_message_id") else None
    shared = command.key_shared_meta if command.HasField("key_shared_meta") else None
    return events.Subscribe(
        request_id=command.request_id,
        consumer_id=command.consumer_id,
        topic=command.topic,
        subscription=command.subscription,
        type=events.SubscriptionType(command.sub_type),
        consumer_name=command.consumer_name,
        priority_level=command.priority_level,
        durable=command.durable,
        start=parts.message_id(start) if start is not None else None,
        start_rollback_seconds=command.start_message_rollback_duration_sec,
        from_earliest=command.initial_position == pb.CommandSubscribe.EARLIEST,
        read_compacted=command.read_compacted,
        create_topic=command.force_topic_creation,
        replicated=command.replicate_subscription_state,
        key_shared=_key_shared(shared) if shared is not None else None,
        consumer_epoch=command.consumer_epoch if command.HasField("consumer_epoch") else None,
        metadata=parts.mapping(command.metadata),
        properties=parts.mapping(command.subscription_properties),
        schema=parts.schema(command),
    )


def _key_shared(shared: pb.KeySharedMeta) -> events.KeyShared:
    return events.KeyShared(
        shared.key_shared_mode == pb.STICKY,
        tuple((each.start, each.end) for each in shared.hash_ranges),
        shared.allow_out_of_order_delivery,
    )


def _close_producer(command: pb.CommandCloseProducer) -> events.CloseProducer:
    return events.CloseProducer(command.request_id, command.producer_id)


def _close_consumer(command: pb.CommandCloseConsumer) -> events.CloseConsumer:
    return events.CloseConsumer(command.request_id, command.consumer_id)


def _unsubscribe(command: pb.CommandUnsubscribe) -> events.Unsubscribe:
    return events.Unsubscribe(command.request_id, command.consumer_id, command.force)


def _seek(command: pb.CommandSeek) -> events.Seek:
    return events.Seek(
        command.request_id,
        command.consumer_id,
        parts.message_id(command.message_id) if command.HasField("message_id") else None,
        command.message_publish_time if command.HasField("message_publish_time") else None,
    )


def _redeliver(command: pb.CommandRedeliverUnacknowledgedMessages) -> events.Redeliver:
    return events.Redeliver(
        command.consumer_id,
        tuple(parts.message_id(data) for data in command.message_ids),
        command.consumer_epoch if command.HasField("consumer_epoch") else None,
    )


def _get_last_message_id(command: pb.CommandGetLastMessageId) -> events.GetLastMessageId:
    return events.GetLastMessageId(command.request_id, command.consumer_id)


def _consumer_stats(command: pb.CommandConsumerStats) -> events.ConsumerStats:
    return events.ConsumerStats(command.request_id, command.consumer_id)


# -- Schemas, transactions, watchers -------------------------------------------------------------


def _get_schema(command: pb.CommandGetSchema) -> events.GetSchema:
    version = command.schema_version if command.HasField("schema_version") else None
    return events.GetSchema(command.request_id, command.topic, version)


def _get_or_create_schema(command: pb.CommandGetOrCreateSchema) -> events.GetOrCreateSchema:
    return events.GetOrCreateSchema(
        command.request_id, command.topic, parts.schema_info(command.schema), command.producer_name
    )


def _tc_connect(command: pb.CommandTcClientConnectRequest) -> events.TcConnect:
    return events.TcConnect(command.request_id, command.tc_id)


def _new_txn(command: pb.CommandNewTxn) -> events.NewTxn:
    return events.NewTxn(command.request_id, command.tc_id, command.txn_ttl_millis)


def _add_partitions(command: pb.CommandAddPartitionToTxn) -> events.AddPartitionsToTxn:
    return events.AddPartitionsToTxn(
        command.request_id, parts.txn(command), tuple(command.partitions)
    )


def _add_subscriptions(command: pb.CommandAddSubscriptionToTxn) -> events.AddSubscriptionsToTxn:
    pairs = tuple((each.topic, each.subscription) for each in command.subscription)
    return events.AddSubscriptionsToTxn(command.request_id, parts.txn(command), pairs)


def _end_txn(command: pb.CommandEndTxn) -> events.EndTxn:
    return events.EndTxn(command.request_id, parts.txn(command), command.txn_action == pb.COMMIT)


def _end_on_partition(command: pb.CommandEndTxnOnPartition) -> events.EndTxnOnPartition:
    return events.EndTxnOnPartition(
        command.request_id,
        parts.txn(command),
        command.txn_action == pb.COMMIT,
        command.topic,
        command.txnid_least_bits_of_low_watermark,
    )


def _end_on_subscription(
    command: pb.CommandEndTxnOnSubscription,
) -> events.EndTxnOnSubscription:
    return events.EndTxnOnSubscription(
        command.request_id,
        parts.txn(command),
        command.txn_action == pb.COMMIT,
        command.subscription.topic,
        command.subscription.subscription,
        command.txnid_least_bits_of_low_watermark,
    )


def _watch_topics(command: pb.CommandWatchTopicList) -> events.WatchTopics:
    return events.WatchTopics(
        command.request_id,
        command.watcher_id,
        command.namespace,
        command.topics_pattern,
        command.topics_hash if command.HasField("topics_hash") else None,
    )


def _close_watch(command: pb.CommandWatchTopicListClose) -> events.CloseWatch:
    return events.CloseWatch(command.request_id, command.watcher_id)


# -- The table -------------------------------------------------------------------------------

_DECODERS: Sequence[tuple[Any, Callable[[Any], events.Event | Send]]] = (
    (pb.BaseCommand.CONNECT, _connect),
    (pb.BaseCommand.SUBSCRIBE, _subscribe),
    (pb.BaseCommand.PRODUCER, _producer),
    (pb.BaseCommand.SEND, _send),
    (pb.BaseCommand.ACK, _ack),
    (pb.BaseCommand.FLOW, _flow),
    (pb.BaseCommand.UNSUBSCRIBE, _unsubscribe),
    (pb.BaseCommand.CLOSE_PRODUCER, _close_producer),
    (pb.BaseCommand.CLOSE_CONSUMER, _close_consumer),
    (pb.BaseCommand.PING, lambda _: events.Ping()),
    (pb.BaseCommand.PONG, lambda _: events.Pong()),
    (pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, _redeliver),
    (pb.BaseCommand.PARTITIONED_METADATA, _partitioned_metadata),
    (pb.BaseCommand.LOOKUP, _lookup),
    (pb.BaseCommand.CONSUMER_STATS, _consumer_stats),
    (pb.BaseCommand.SEEK, _seek),
    (pb.BaseCommand.GET_LAST_MESSAGE_ID, _get_last_message_id),
    (pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, _topics_of_namespace),
    (pb.BaseCommand.GET_SCHEMA, _get_schema),
    (pb.BaseCommand.AUTH_RESPONSE, _auth_response),
    (pb.BaseCommand.GET_OR_CREATE_SCHEMA, _get_or_create_schema),
    (pb.BaseCommand.NEW_TXN, _new_txn),
    (pb.BaseCommand.ADD_PARTITION_TO_TXN, _add_partitions),
    (pb.BaseCommand.ADD_SUBSCRIPTION_TO_TXN, _add_subscriptions),
    (pb.BaseCommand.END_TXN, _end_txn),
    (pb.BaseCommand.END_TXN_ON_PARTITION, _end_on_partition),
    (pb.BaseCommand.END_TXN_ON_SUBSCRIPTION, _end_on_subscription),
    (pb.BaseCommand.TC_CLIENT_CONNECT_REQUEST, _tc_connect),
    (pb.BaseCommand.WATCH_TOPIC_LIST, _watch_topics),
    (pb.BaseCommand.WATCH_TOPIC_LIST_CLOSE, _close_watch),
)

# The field that holds a command has the number of its type.
DECODERS: Final[Mapping[int, tuple[str, Callable[[Any], events.Event | Send]]]] = {
    kind: (pb.BaseCommand.DESCRIPTOR.fields_by_number[kind].name, decoder)
    for kind, decoder in _DECODERS
}
