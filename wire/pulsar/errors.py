"""From our errors to Pulsar's codes.

The table names every leaf of `core.errors` (a test sees to it). Clients act on codes, so each
choice has consequences: which are final for a client, which make it look up again, which make it
drop the connection. Texts matter less, but Go looks for the *names* of codes inside them: keep them
plain.
"""

from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel import errors
from magnetar.wire.pulsar import commands_pb2 as pb

CODES: Final[Mapping[type[errors.BrokerError], pb.ServerError]] = {
    errors.TopicNotFound: pb.TopicNotFound,
    errors.SubscriptionNotFound: pb.SubscriptionNotFound,
    errors.ConsumerNotFound: pb.ConsumerNotFound,
    # A missing namespace is found missing by the name of a topic in it.
    errors.NamespaceNotFound: pb.TopicNotFound,
    errors.LedgerNotFound: pb.PersistenceError,
    errors.EntryNotFound: pb.PersistenceError,
    errors.AlreadyExists: pb.NotAllowedError,
    # Retried by clients until their operation timeout, which is what a lost race asks for.
    errors.BadVersion: pb.MetadataError,
    errors.ConsumerBusy: pb.ConsumerBusy,
    errors.ProducerBusy: pb.ProducerBusy,
    errors.ProducerFenced: pb.ProducerFenced,
    errors.HashRangeTaken: pb.ConsumerAssignError,
    errors.SubscriptionBusy: pb.UnknownError,
    errors.NotAllowed: pb.NotAllowedError,
    errors.Invalid: pb.MetadataError,
    errors.InvalidName: pb.InvalidTopicName,
    errors.ChecksumMismatch: pb.ChecksumError,
    errors.Terminated: pb.TopicTerminatedError,
    errors.Unsupported: pb.NotAllowedError,
    errors.Unauthenticated: pb.AuthenticationError,
    errors.Unauthorized: pb.AuthorizationError,
    errors.IncompatibleSchema: pb.IncompatibleSchema,
    # In a lookup's reply this one costs the client its connection: for real ownership trouble only.
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
"""As a SEND_ERROR these concern messages. Every other makes all clients close the connection and
send everything again, so a handler with another reason closes the producer instead."""


def code_of(error: errors.BrokerError) -> pb.ServerError:
    """The code on the wire (`ServerError` in PulsarApi.proto) for an error of the core."""
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return pb.UnknownError


def spares_connection(error: errors.BrokerError) -> bool:
    """Whether a SEND_ERROR with this error leaves the client's connection alone."""
    return isinstance(error, SPARED)
