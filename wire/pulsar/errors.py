"""The mapping of the broker's errors to Pulsar's codes.

The table has every leaf of `core/kernel/errors.py` (a test checks it). Clients act on codes: some
are final, some make a client look the topic up again, some make it close the connection. Go's
client also searches texts for the *names* of codes, so texts must not contain them by chance.
"""

from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel import errors
from magnetar.wire.pulsar import commands_pb2 as pb

CODES: Final[Mapping[type[errors.BrokerError], pb.ServerError]] = {
    errors.TopicNotFound: pb.TopicNotFound,
    errors.SubscriptionNotFound: pb.SubscriptionNotFound,
    errors.ConsumerNotFound: pb.ConsumerNotFound,
    # A missing namespace is reported for a topic in it.
    errors.NamespaceNotFound: pb.TopicNotFound,
    errors.LedgerNotFound: pb.PersistenceError,
    errors.EntryNotFound: pb.PersistenceError,
    errors.TransactionNotFound: pb.TransactionNotFound,
    errors.AlreadyExists: pb.NotAllowedError,
    # Clients retry it until their operation timeout, which suits a lost race.
    errors.BadVersion: pb.MetadataError,
    errors.ConsumerBusy: pb.ConsumerBusy,
    errors.ProducerBusy: pb.ProducerBusy,
    errors.ProducerFenced: pb.ProducerFenced,
    errors.HashRangeTaken: pb.ConsumerAssignError,
    errors.SubscriptionBusy: pb.UnknownError,
    errors.TransactionConflict: pb.TransactionConflict,
    errors.WrongTransactionState: pb.InvalidTxnStatus,
    errors.NotAllowed: pb.NotAllowedError,
    errors.Invalid: pb.MetadataError,
    errors.InvalidName: pb.InvalidTopicName,
    errors.ChecksumMismatch: pb.ChecksumError,
    errors.Terminated: pb.TopicTerminatedError,
    errors.Unsupported: pb.NotAllowedError,
    errors.Unauthenticated: pb.AuthenticationError,
    errors.Unauthorized: pb.AuthorizationError,
    errors.IncompatibleSchema: pb.IncompatibleSchema,
    # In a lookup's reply it makes clients close the connection: only for wrong ownership.
    errors.NotReady: pb.ServiceNotReady,
    errors.NotOwned: pb.ServiceNotReady,
    errors.NotCoordinator: pb.TransactionCoordinatorNotFound,
    errors.Overloaded: pb.TooManyRequests,
    errors.QuotaHeld: pb.ProducerBlockedQuotaExceededError,
    errors.QuotaExceeded: pb.ProducerBlockedQuotaExceededException,
    errors.Fenced: pb.ServiceNotReady,
    errors.StorageFailed: pb.PersistenceError,
    errors.StorageFull: pb.PersistenceError,
    errors.Corrupted: pb.PersistenceError,
}

SPARED: Final = (errors.ChecksumMismatch, errors.Terminated, errors.NotAllowed)
"""SEND_ERROR with one of these fails the message. With any other, all clients close the connection
and send all pending messages again, so handlers close the producer instead."""


def code_of(error: errors.BrokerError) -> pb.ServerError:
    """The code on the wire (`ServerError` in PulsarApi.proto) for an error of the core."""
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return pb.UnknownError


def spares_connection(error: errors.BrokerError) -> bool:
    """Whether a SEND_ERROR with this error leaves the client's connection alone."""
    return isinstance(error, SPARED)
