"""Each command a client may send, and the event that it is."""

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands, events
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

PAIR = [pb.KeyValue(key="a", value="b")]
SCHEMA = pb.Schema(name="s", schema_data=b"null", type=pb.Schema.STRING, properties=PAIR)
SCHEMA_INFO = events.SchemaInfo("s", 1, b"null", {"a": "b"})
USER = {"original_principal": "u", "original_auth_data": "d", "original_auth_method": "token"}
ORIGINAL = events.OriginalUser("u", "d", "token")
TXN = {"txnid_most_bits": 3, "txnid_least_bits": 4}

CASES = [
    (
        "CONNECT",
        pb.CommandConnect(
            client_version="v",
            auth_method_name="token",
            auth_data=b"secret",
            protocol_version=21,
            proxy_to_broker_url="host:6650",
            feature_flags=pb.FeatureFlags(supports_topic_watchers=True),
            proxy_version="p",
            **USER,
        ),
        events.Connect(
            "v",
            21,
            "token",
            b"secret",
            events.Features(topic_watchers=True),
            "host:6650",
            ORIGINAL,
            "p",
        ),
    ),
    (
        "CONNECT",
        pb.CommandConnect(client_version="old", auth_method=pb.AUTH_METHOD_ATHENS),
        events.Connect("old", 0, "athenz", b"", events.Features()),
    ),
    (
        "AUTH_RESPONSE",
        pb.CommandAuthResponse(
            client_version="v",
            protocol_version=20,
            response=pb.AuthData(auth_method_name="token", auth_data=b"new"),
        ),
        events.AuthResponse("v", 20, "token", b"new"),
    ),
    (
        "LOOKUP",
        pb.CommandLookupTopic(
            topic="t",
            request_id=1,
            authoritative=True,
            advertised_listener_name="inside",
            properties=PAIR,
            **USER,
        ),
        events.Lookup(1, "t", True, "inside", ORIGINAL, {"a": "b"}),
    ),
    (
        "PARTITIONED_METADATA",
        pb.CommandPartitionedTopicMetadata(
            topic="t", request_id=1, metadata_auto_creation_enabled=False, **USER
        ),
        events.PartitionedMetadata(1, "t", False, ORIGINAL),
    ),
    (
        "GET_TOPICS_OF_NAMESPACE",
        pb.CommandGetTopicsOfNamespace(
            request_id=1,
            namespace="a/b",
            mode=pb.CommandGetTopicsOfNamespace.ALL,
            topics_pattern="x.*",
            topics_hash="",
            properties=PAIR,
        ),
        events.TopicsOfNamespace(1, "a/b", events.TopicsMode.ALL, "x.*", "", {"a": "b"}),
    ),
    (
        "GET_TOPICS_OF_NAMESPACE",
        pb.CommandGetTopicsOfNamespace(request_id=1, namespace="a/b"),
        events.TopicsOfNamespace(1, "a/b"),
    ),
    (
        "PRODUCER",
        pb.CommandProducer(
            topic="t",
            producer_id=2,
            request_id=1,
            producer_name="me",
            encrypted=True,
            metadata=PAIR,
            schema=SCHEMA,
            epoch=3,
            user_provided_producer_name=True,
            producer_access_mode=pb.EXCLUSIVE_WITH_FENCING,
            topic_epoch=0,
            txn_enabled=True,
            initial_subscription_name="dlq",
        ),
        events.Producer(
            request_id=1,
            producer_id=2,
            topic="t",
            name="me",
            epoch=3,
            access_mode=events.AccessMode.EXCLUSIVE_WITH_FENCING,
            topic_epoch=0,
            encrypted=True,
            transactional=True,
            initial_subscription="dlq",
            metadata={"a": "b"},
            schema=SCHEMA_INFO,
        ),
    ),
    (
        "PRODUCER",
        pb.CommandProducer(topic="t", producer_id=2, request_id=1),
        events.Producer(1, 2, "t"),
    ),
    (
        "SUBSCRIBE",
        pb.CommandSubscribe(
            topic="t",
            subscription="s",
            sub_type=pb.CommandSubscribe.KEY_SHARED,
            consumer_id=2,
            request_id=1,
            consumer_name="c",
            priority_level=4,
            durable=False,
            start_message_id=peer.message_id(
                -1, 7, batch_index=2, first_chunk_message_id=peer.message_id(3, 4)
            ),
            metadata=PAIR,
            read_compacted=True,
            schema=SCHEMA,
            initial_position=pb.CommandSubscribe.EARLIEST,
            replicate_subscription_state=True,
            force_topic_creation=False,
            start_message_rollback_duration_sec=60,
            key_shared_meta=pb.KeySharedMeta(
                key_shared_mode=pb.STICKY,
                hash_ranges=[pb.IntRange(start=0, end=9)],
                allow_out_of_order_delivery=True,
            ),
            subscription_properties=PAIR,
            consumer_epoch=5,
        ),
        events.Subscribe(
            request_id=1,
            consumer_id=2,
            topic="t",
            subscription="s",
            type=events.SubscriptionType.KEY_SHARED,
            consumer_name="c",
            priority_level=4,
            durable=False,
            start=events.MessageId(-1, 7, batch_index=2, first_chunk=events.MessageId(3, 4)),
            start_rollback_seconds=60,
            from_earliest=True,
            read_compacted=True,
            create_topic=False,
            replicated=True,
            key_shared=events.KeyShared(True, ((0, 9),), True),
            consumer_epoch=5,
            metadata={"a": "b"},
            properties={"a": "b"},
            schema=SCHEMA_INFO,
        ),
    ),
    (
        "SUBSCRIBE",
        pb.CommandSubscribe(
            topic="t",
            subscription="s",
            sub_type=pb.CommandSubscribe.FAILOVER,
            consumer_id=2,
            request_id=1,
        ),
        events.Subscribe(1, 2, "t", "s", events.SubscriptionType.FAILOVER),
    ),
    (
        "UNSUBSCRIBE",
        pb.CommandUnsubscribe(consumer_id=2, request_id=1, force=True),
        events.Unsubscribe(1, 2, True),
    ),
    (
        "CLOSE_PRODUCER",
        pb.CommandCloseProducer(producer_id=2, request_id=1),
        events.CloseProducer(1, 2),
    ),
    (
        "CLOSE_CONSUMER",
        pb.CommandCloseConsumer(consumer_id=2, request_id=1),
        events.CloseConsumer(1, 2),
    ),
    ("PING", pb.CommandPing(), events.Ping()),
    ("PONG", pb.CommandPong(), events.Pong()),
    (
        "REDELIVER_UNACKNOWLEDGED_MESSAGES",
        pb.CommandRedeliverUnacknowledgedMessages(
            consumer_id=2, message_ids=[peer.message_id(5, 6, ack_set=[1])], consumer_epoch=1
        ),
        events.Redeliver(2, (events.MessageId(5, 6, ack_mask=1),), 1),
    ),
    (
        "SEEK",
        pb.CommandSeek(consumer_id=2, request_id=1, message_publish_time=0),
        events.Seek(1, 2, None, 0),
    ),
    (
        "SEEK",
        pb.CommandSeek(consumer_id=2, request_id=1),
        events.Seek(1, 2),
    ),
    (
        "GET_LAST_MESSAGE_ID",
        pb.CommandGetLastMessageId(consumer_id=2, request_id=1),
        events.GetLastMessageId(1, 2),
    ),
    (
        "CONSUMER_STATS",
        pb.CommandConsumerStats(consumer_id=2, request_id=1),
        events.ConsumerStats(1, 2),
    ),
    (
        "GET_SCHEMA",
        pb.CommandGetSchema(request_id=1, topic="t", schema_version=b""),
        events.GetSchema(1, "t", b""),
    ),
    ("GET_SCHEMA", pb.CommandGetSchema(request_id=1, topic="t"), events.GetSchema(1, "t")),
    (
        "GET_OR_CREATE_SCHEMA",
        pb.CommandGetOrCreateSchema(request_id=1, topic="t", schema=SCHEMA, producer_name="p"),
        events.GetOrCreateSchema(1, "t", SCHEMA_INFO, "p"),
    ),
    (
        "TC_CLIENT_CONNECT_REQUEST",
        pb.CommandTcClientConnectRequest(request_id=1, tc_id=0),
        events.TcConnect(1, 0),
    ),
    (
        "NEW_TXN",
        pb.CommandNewTxn(request_id=1, txn_ttl_millis=9, tc_id=2),
        events.NewTxn(1, 2, 9),
    ),
    (
        "ADD_PARTITION_TO_TXN",
        pb.CommandAddPartitionToTxn(request_id=1, partitions=["t"], **TXN),
        events.AddPartitionsToTxn(1, (3, 4), ("t",)),
    ),
    (
        "ADD_SUBSCRIPTION_TO_TXN",
        pb.CommandAddSubscriptionToTxn(
            request_id=1, subscription=[pb.Subscription(topic="t", subscription="s")], **TXN
        ),
        events.AddSubscriptionsToTxn(1, (3, 4), (("t", "s"),)),
    ),
    (
        "END_TXN",
        pb.CommandEndTxn(request_id=1, txn_action=pb.ABORT, **TXN),
        events.EndTxn(1, (3, 4), False),
    ),
    (
        "END_TXN_ON_PARTITION",
        pb.CommandEndTxnOnPartition(request_id=1, topic="t", txn_action=pb.COMMIT, **TXN),
        events.EndTxnOnPartition(1, (3, 4), True, "t"),
    ),
    (
        "END_TXN_ON_SUBSCRIPTION",
        pb.CommandEndTxnOnSubscription(
            request_id=1,
            subscription=pb.Subscription(topic="t", subscription="s"),
            txn_action=pb.COMMIT,
            txnid_least_bits_of_low_watermark=7,
            **TXN,
        ),
        events.EndTxnOnSubscription(1, (3, 4), True, "t", "s", 7),
    ),
    (
        "WATCH_TOPIC_LIST",
        pb.CommandWatchTopicList(
            request_id=1, watcher_id=2, namespace="a/b", topics_pattern="x", topics_hash="h"
        ),
        events.WatchTopics(1, 2, "a/b", "x", "h"),
    ),
    (
        "WATCH_TOPIC_LIST_CLOSE",
        pb.CommandWatchTopicListClose(request_id=1, watcher_id=2),
        events.CloseWatch(1, 2),
    ),
]


@pytest.mark.parametrize(("kind", "message", "event"), CASES)
def test_commands(kind, message, event):
    assert commands.decode(peer.frame(kind, message)[8:]) == event


def test_every_command_that_clients_send_is_tried():
    tried = {kind for kind, _, _ in CASES} | {"SEND", "ACK", "FLOW"}
    assert tried == {pb.BaseCommand.Type.Name(kind) for kind in commands.DECODERS}


def test_every_event_comes_from_somewhere():
    seen = {type(event) for _, _, event in CASES}
    hot = {events.Sends, events.BadChecksum, events.Acks, events.Flow}
    assert seen | hot == set(events.ALL)


@pytest.mark.parametrize(
    "kind",
    [name for name, number in pb.BaseCommand.Type.items() if number not in commands.DECODERS],
)
def test_the_others_are_not_for_clients(kind):
    command = b"\x08" + bytes([pb.BaseCommand.Type.Value(kind)])
    with pytest.raises(WireError, match=kind):
        commands.decode(command)


def test_scalable_topics_are_unknown():
    with pytest.raises(WireError):
        commands.decode(b"\x08\x46\xb2\x04\x00")
