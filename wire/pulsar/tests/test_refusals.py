"""Refusals reach whoever waits: each in its own kind, required fields present."""

import pytest

from magnetar.core.kernel import errors
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, refusals
from magnetar.wire.pulsar.tests import peer


def received(frame: bytes) -> peer.ReceivedFrame:
    (only,) = peer.parse_frames(frame)
    assert only.tail == b""
    return only


TXN = (0, 4)
SCHEMA = events.SchemaInfo("s", 0, b"", {})
REQUESTS = [
    (events.Lookup(0, "t"), "LOOKUP_RESPONSE"),
    (events.PartitionedMetadata(0, "t"), "PARTITIONED_METADATA_RESPONSE"),
    (events.ConsumerStats(0, 1), "CONSUMER_STATS_RESPONSE"),
    (events.GetSchema(0, "t"), "GET_SCHEMA_RESPONSE"),
    (events.GetOrCreateSchema(0, "t", SCHEMA), "GET_OR_CREATE_SCHEMA_RESPONSE"),
    (events.TcConnect(0, 0), "TC_CLIENT_CONNECT_RESPONSE"),
    (events.NewTxn(0, 0, 1), "NEW_TXN_RESPONSE"),
    (events.AddPartitionsToTxn(0, TXN, ()), "ADD_PARTITION_TO_TXN_RESPONSE"),
    (events.AddSubscriptionsToTxn(0, TXN, ()), "ADD_SUBSCRIPTION_TO_TXN_RESPONSE"),
    (events.EndTxn(0, TXN, True), "END_TXN_RESPONSE"),
    (events.EndTxnOnPartition(0, TXN, True, "t"), "END_TXN_ON_PARTITION_RESPONSE"),
    (events.EndTxnOnSubscription(0, TXN, True, "t", "s"), "END_TXN_ON_SUBSCRIPTION_RESPONSE"),
    (events.Producer(0, 1, "t"), "ERROR"),
    (events.Subscribe(0, 1, "t", "s", events.SubscriptionType.SHARED), "ERROR"),
    (events.CloseProducer(0, 1), "ERROR"),
    (events.CloseConsumer(0, 1), "ERROR"),
    (events.Unsubscribe(0, 1), "ERROR"),
    (events.Seek(0, 1), "ERROR"),
    (events.GetLastMessageId(0, 1), "ERROR"),
    (events.TopicsOfNamespace(0, "n"), "ERROR"),
    (events.WatchTopics(0, 1, "n", "p"), "ERROR"),
    (events.CloseWatch(0, 1), "ERROR"),
]


@pytest.mark.parametrize(("request_event", "kind"), REQUESTS)
def test_failures_reach_those_who_wait(request_event, kind):
    said = received(refusals.failure(request_event, errors.NotAllowed("no")))
    assert said.kind == kind
    fields = {field.name: value for field, value in said.body.ListFields()}
    assert fields["request_id"] == 0
    assert fields.get("error", fields.get("error_code")) == pb.NotAllowedError
    assert fields.get("message", fields.get("error_message")) == "no"
    if kind.endswith(("LOOKUP_RESPONSE", "METADATA_RESPONSE")):
        assert "response" in fields
    if "txnid_most_bits" in said.body.DESCRIPTOR.fields_by_name:
        assert fields["txnid_most_bits"] == 0
        assert "txnid_least_bits" in fields


def test_every_request_can_fail():
    requested = {type(event) for event, _ in REQUESTS}
    with_id = {kind for kind in events.ALL if "request_id" in kind.__struct_fields__}
    assert requested | {events.Acks} == with_id  # Acks have `ack_response`


def test_a_failed_transaction_names_its_coordinator():
    said = received(refusals.failure(events.NewTxn(1, 7, 1), errors.NotReady("later"))).body
    assert said.txnid_most_bits == 7


def test_no_transactions_here():
    said = received(refusals.transactions_are_off(1))
    assert (said.kind, said.body.error) == ("ERROR", pb.NotAllowedError)
    assert said.body.message == "Transactions are not enabled."
