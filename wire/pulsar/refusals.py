"""Encodes errors, each in the type of reply that the request's client waits for.

A plain ERROR completes only some requests of stock clients (`handleError` in
`ClientConnection.cc`). Lookups, schemas, statistics and transactions have replies of their own with
code and text, and their clients wait for these until the request times out.

Invariant: every request of `events` can be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.errors import code_of
from magnetar.wire.pulsar.replies import Type, frame


def failure(event: Any, refusal: BrokerError) -> bytes:
    """The reply to a failed request: of its own type if there is one, else ERROR."""
    return FAILURES.get(type(event), _failed)(event, code_of(refusal), str(refusal))


def transactions_are_off(request_id: int) -> bytes:
    """The reply of a broker without transaction coordinators; Go's suite checks its text."""
    return replies.error(request_id, pb.NotAllowedError, "Transactions are not enabled.")


def _failed(event: Any, code: pb.ServerError, text: str) -> bytes:
    return replies.error(event.request_id, code, text)


def _answered(kind: pb.BaseCommand.Type, reply: type[Any]) -> Callable[..., bytes]:
    def failed(event: Any, code: pb.ServerError, text: str) -> bytes:
        refused = reply(
            request_id=event.request_id, response=reply.FAILED, error=code, message=text
        )
        return frame(kind, refused)

    return failed


def _coded(kind: pb.BaseCommand.Type, reply: type[Any]) -> Callable[..., bytes]:
    def failed(event: Any, code: pb.ServerError, text: str) -> bytes:
        return frame(kind, reply(request_id=event.request_id, error_code=code, error_message=text))

    return failed


def _txn_failed(kind: pb.BaseCommand.Type, reply: type[Any]) -> Callable[..., bytes]:
    def failed(event: Any, code: pb.ServerError, text: str) -> bytes:
        # Java finds the coordinator by the high half, so a failed NEW_TXN has it as well.
        most, least = (event.coordinator_id, 0) if isinstance(event, events.NewTxn) else event.txn
        return frame(
            kind,
            reply(
                request_id=event.request_id,
                txnid_most_bits=most,
                txnid_least_bits=least,
                error=code,
                message=text,
            ),
        )

    return failed


def _tc_failed(event: events.TcConnect, code: pb.ServerError, text: str) -> bytes:
    return frame(
        Type.TC_CLIENT_CONNECT_RESPONSE,
        pb.CommandTcClientConnectResponse(request_id=event.request_id, error=code, message=text),
    )


FAILURES: Final[Mapping[type, Callable[[Any, pb.ServerError, str], bytes]]] = {
    events.Lookup: _answered(Type.LOOKUP_RESPONSE, pb.CommandLookupTopicResponse),
    events.PartitionedMetadata: _answered(
        Type.PARTITIONED_METADATA_RESPONSE, pb.CommandPartitionedTopicMetadataResponse
    ),
    events.ConsumerStats: _coded(Type.CONSUMER_STATS_RESPONSE, pb.CommandConsumerStatsResponse),
    events.GetSchema: _coded(Type.GET_SCHEMA_RESPONSE, pb.CommandGetSchemaResponse),
    events.GetOrCreateSchema: _coded(
        Type.GET_OR_CREATE_SCHEMA_RESPONSE, pb.CommandGetOrCreateSchemaResponse
    ),
    events.TcConnect: _tc_failed,
    events.NewTxn: _txn_failed(Type.NEW_TXN_RESPONSE, pb.CommandNewTxnResponse),
    events.AddPartitionsToTxn: _txn_failed(
        Type.ADD_PARTITION_TO_TXN_RESPONSE, pb.CommandAddPartitionToTxnResponse
    ),
    events.AddSubscriptionsToTxn: _txn_failed(
        Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, pb.CommandAddSubscriptionToTxnResponse
    ),
    events.EndTxn: _txn_failed(Type.END_TXN_RESPONSE, pb.CommandEndTxnResponse),
    events.EndTxnOnPartition: _txn_failed(
        Type.END_TXN_ON_PARTITION_RESPONSE, pb.CommandEndTxnOnPartitionResponse
    ),
    events.EndTxnOnSubscription: _txn_failed(
        Type.END_TXN_ON_SUBSCRIPTION_RESPONSE, pb.CommandEndTxnOnSubscriptionResponse
    ),
}
"""Requests whose clients ignore a plain ERROR."""
