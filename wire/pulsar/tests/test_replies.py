"""What a broker says, as clients read it: required fields present."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel import errors
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.tests import peer

HERE = replies.Address("pulsar://here:6650", "pulsar+ssl://here:6651")
NOBODY = (1 << 64) - 1


def received(frame: bytes) -> peer.ReceivedFrame:
    (only,) = peer.parse_frames(frame)
    assert only.tail == b""
    return only


def says(frame: bytes, kind: str, **fields) -> None:
    """The command has exactly these fields, present even where they are zero."""
    said = received(frame)
    assert said.kind == kind
    assert {field.name: value for field, value in said.body.ListFields()} == fields


def test_connected():
    features = events.Features(partitioned_metadata_without_creation=True)
    flags = pb.FeatureFlags(
        supports_auth_refresh=False,
        supports_broker_entry_metadata=False,
        supports_partial_producer=False,
        supports_topic_watchers=False,
        supports_get_partitioned_metadata_without_auto_creation=True,
        supports_repl_dedup_by_lid_and_eid=False,
        supports_topic_watcher_reconcile=False,
    )
    says(
        replies.connected("Magnetar", 20, 5 << 20, features),
        "CONNECTED",
        server_version="Magnetar",
        protocol_version=20,
        max_message_size=5 << 20,
        feature_flags=flags,
    )


def test_auth_challenge():
    says(
        replies.auth_challenge("Magnetar", 20, "token", b"PulsarAuthRefresh"),
        "AUTH_CHALLENGE",
        server_version="Magnetar",
        protocol_version=20,
        challenge=pb.AuthData(auth_method_name="token", auth_data=b"PulsarAuthRefresh"),
    )


def test_simple_ones():
    says(replies.PING, "PING")
    says(replies.PONG, "PONG")
    says(replies.success(0), "SUCCESS", request_id=0)
    says(
        replies.error(0, pb.UnknownError, ""),
        "ERROR",
        request_id=0,
        error=pb.UnknownError,
        message="",
    )


def test_partitioned_metadata():
    says(
        replies.partitioned_metadata(0, 0),
        "PARTITIONED_METADATA_RESPONSE",
        request_id=0,
        partitions=0,
        response=pb.CommandPartitionedTopicMetadataResponse.SUCCESS,
    )


def test_lookups():
    says(
        replies.lookup_connect(0, HERE, False),
        "LOOKUP_RESPONSE",
        request_id=0,
        response=pb.CommandLookupTopicResponse.CONNECT,
        broker_service_url=HERE.url,
        broker_service_url_tls=HERE.url_tls,
        authoritative=True,
        proxy_through_service_url=False,
    )
    says(
        replies.lookup_redirect(0, replies.Address("pulsar://there:6650"), False),
        "LOOKUP_RESPONSE",
        request_id=0,
        response=pb.CommandLookupTopicResponse.REDIRECT,
        broker_service_url="pulsar://there:6650",
        authoritative=False,
    )
    assert not received(replies.lookup_connect(0, replies.Address(), True)).body.broker_service_url


def test_topics_of_namespace():
    says(
        replies.topics_of_namespace(1, ["a", "b"]),
        "GET_TOPICS_OF_NAMESPACE_RESPONSE",
        request_id=1,
        topics=["a", "b"],
        filtered=False,
        changed=True,
    )
    unchanged = received(replies.topics_of_namespace(1, [], "hash", True, False)).body
    assert (unchanged.topics_hash, unchanged.filtered, unchanged.changed) == ("hash", True, False)


def test_producer_success():
    says(
        replies.producer_success(0, "p"),
        "PRODUCER_SUCCESS",
        request_id=0,
        producer_name="p",
        last_sequence_id=-1,
        schema_version=b"",
        producer_ready=True,
    )
    waiting = received(replies.producer_success(0, "p", ready=False)).body
    assert (waiting.producer_ready, waiting.HasField("topic_epoch")) == (False, False)
    owner = received(replies.producer_success(0, "p", 7, b"v", 0)).body
    assert (owner.topic_epoch, owner.HasField("topic_epoch")) == (0, True)


def test_schema_found():
    schema = events.SchemaInfo("public/default/t", 4, b"{}", {"a": "b"})
    reply = received(replies.schema_found(3, schema, b"\0" * 8)).body
    assert (reply.request_id, reply.schema_version) == (3, b"\0" * 8)
    assert not reply.HasField("error_code")
    assert (reply.schema.name, reply.schema.type) == ("public/default/t", pb.Schema.AVRO)
    assert (reply.schema.schema_data, len(reply.schema.properties)) == (b"{}", 1)


def test_schema_taken():
    reply = received(replies.schema_taken(0)).body
    assert (reply.request_id, reply.schema_version) == (0, b"")
    assert reply.HasField("schema_version")
    assert not reply.HasField("error_code")


def test_send_error():
    says(
        replies.send_error(1, 2, errors.ChecksumMismatch("no")),
        "SEND_ERROR",
        producer_id=1,
        sequence_id=2,
        error=pb.ChecksumError,
        message="no",
    )


def test_closing_and_moving():
    says(replies.close_producer(1), "CLOSE_PRODUCER", producer_id=1, request_id=NOBODY)
    says(replies.close_consumer(1), "CLOSE_CONSUMER", consumer_id=1, request_id=NOBODY)
    says(
        replies.close_producer(1, HERE),
        "CLOSE_PRODUCER",
        producer_id=1,
        request_id=NOBODY,
        assigned_broker_service_url=HERE.url,
        assigned_broker_service_url_tls=HERE.url_tls,
    )


def test_ack_responses():
    says(replies.ack_response(1, 2), "ACK_RESPONSE", consumer_id=1, request_id=2)
    failed = received(replies.ack_response(1, 2, errors.NotAllowed(), (3, 4))).body
    assert (failed.error, bool(failed.message)) == (pb.NotAllowedError, True)
    assert (failed.txnid_most_bits, failed.txnid_least_bits) == (3, 4)


@given(st.lists(st.one_of(st.integers(0, 40_000), st.integers(0, (1 << 64) - 1)), max_size=40))
def test_many_ack_responses_are_what_each_would_be(request_ids):
    each = [replies.ack_response(3, request_id, None, (1, 200)) for request_id in request_ids]
    assert replies.ack_responses(3, request_ids, (1, 200)) == b"".join(each)


def test_consumers():
    says(
        replies.active_consumer_change(1, False),
        "ACTIVE_CONSUMER_CHANGE",
        consumer_id=1,
        is_active=False,
    )
    says(replies.reached_end_of_topic(1), "REACHED_END_OF_TOPIC", consumer_id=1)
    last = events.MessageId(5, 6, partition=2, batch_index=3, batch_size=4)
    says(
        replies.last_message_id(1, last, events.MessageId(5, -1)),
        "GET_LAST_MESSAGE_ID_RESPONSE",
        request_id=1,
        last_message_id=peer.message_id(5, 6, partition=2, batch_index=3, batch_size=4),
        consumer_mark_delete_position=peer.message_id(5, -1),
    )


def test_consumer_stats():
    figures = replies.ConsumerFigures(
        1.0, 2.0, 3.0, 4.0, 5.0, "c", -6, 7, True, "a:1", "then", "Shared", 8
    )
    says(
        replies.consumer_stats(9, figures),
        "CONSUMER_STATS_RESPONSE",
        request_id=9,
        msg_rate_out=1.0,
        msg_throughput_out=2.0,
        msg_rate_redeliver=3.0,
        message_ack_rate=4.0,
        msg_rate_expired=5.0,
        consumer_name="c",
        available_permits=0,
        unacked_messages=7,
        blocked_consumer_on_unacked_msgs=True,
        address="a:1",
        connected_since="then",
        type="Shared",
        msg_backlog=8,
    )
