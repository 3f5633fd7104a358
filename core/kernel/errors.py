"""The errors of the broker, as one small tree.

    BrokerError
      NotFound             TopicNotFound, SubscriptionNotFound, ConsumerNotFound,
                           NamespaceNotFound, LedgerNotFound, EntryNotFound, TransactionNotFound
      Conflict             AlreadyExists, BadVersion, ConsumerBusy, ProducerBusy, ProducerFenced,
                           HashRangeTaken, SubscriptionBusy, TransactionConflict,
                           WrongTransactionState
      Refused              NotAllowed, Invalid, InvalidName, ChecksumMismatch, Terminated,
                           Unsupported, Unauthenticated, Unauthorized, IncompatibleSchema
      Unavailable          NotReady, NotOwned, NotCoordinator, Overloaded, QuotaHeld,
                           QuotaExceeded, Fenced
      StorageFailed        StorageFull, Corrupted

Each front maps *every leaf* to its own wire code (`wire/<front>/errors.py`, a test asserts that the
table is total). Foreign exceptions are mapped where they enter and never travel further.
`WireError` stands apart: a peer sent bytes that no protocol allows, and its connection is closed.
"""

from collections.abc import Mapping


class BrokerError(Exception):
    """The base of all domain errors; its text is a sentence for users."""


class NotFound(BrokerError):
    """The named thing does not exist."""


class TopicNotFound(NotFound):
    """No such topic, and it may not be created."""


class SubscriptionNotFound(NotFound):
    """No such subscription, and it may not be created."""


class ConsumerNotFound(NotFound):
    """No such consumer: it is not attached."""


class NamespaceNotFound(NotFound):
    """No such tenant or namespace."""


class LedgerNotFound(NotFound):
    """The ledger certainly does not exist: an error of storage is not reported as this."""


class EntryNotFound(NotFound):
    """The entry certainly does not exist, as above."""


class TransactionNotFound(NotFound):
    """No such transaction: it never was, it has ended, or it is somebody else's."""


class Conflict(BrokerError):
    """The request conflicts with the state, or with another client."""


class AlreadyExists(Conflict):
    """The thing to create exists."""


class BadVersion(Conflict):
    """A conditional write lost the race."""


class ConsumerBusy(Conflict):
    """The subscription is taken, or has as many consumers as it may."""


class SubscriptionBusy(Conflict):
    """The subscription is in use in another way (type, mode), or is being reset."""


class ProducerBusy(Conflict):
    """The producer name is taken, or the topic has as many producers as it may."""


class ProducerFenced(Conflict):
    """Another producer holds the topic exclusively: final for this producer."""


class HashRangeTaken(Conflict):
    """Key_Shared: the requested hash ranges overlap a live consumer's, or make no sense."""


class TransactionConflict(Conflict):
    """The message is acknowledged already, or another open transaction acknowledges it."""


class WrongTransactionState(Conflict):
    """The transaction has been decided, so that nothing is added to it, nor decided otherwise."""


class Refused(BrokerError):
    """The request is refused, and trying again does not help."""


class NotAllowed(Refused):
    """A policy or the state forbids it."""


class Invalid(Refused):
    """A field of the request makes no sense."""


class InvalidName(Invalid):
    """A topic, namespace, tenant or subscription name that may not exist."""


class ChecksumMismatch(Refused):
    """The payload is not what its producer sent."""


class Terminated(Refused):
    """The topic is terminated: it accepts no more messages."""


class Unsupported(Refused):
    """A feature this server does not have."""


class Unauthenticated(Refused):
    """The client's identity is not proven."""

    claimed = ""
    """Who the client says it is, where that is known: for the log."""


class Unauthorized(Refused):
    """The client's identity does not permit the action."""


class IncompatibleSchema(Refused):
    """The schema is not compatible with that of the topic."""


class Unavailable(BrokerError):
    """The request fails now; trying again may help."""


class NotReady(Unavailable):
    """The topic is being loaded, unloaded or moved."""


class NotOwned(Unavailable):
    """Another broker owns the topic; a lookup directs clients there."""

    def __init__(self, text: str = "", addresses: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.addresses: Mapping[str, str] = addresses or {}
        """Addresses of the owner, by listener, if known (`core/cluster/ownership.py`)."""


class NotCoordinator(Unavailable):
    """Another broker coordinates the group or the transaction."""


class Overloaded(Unavailable):
    """A limit of this server is reached."""


class QuotaHeld(Unavailable):
    """Backlog quota with policy producer_request_hold."""


class QuotaExceeded(Unavailable):
    """Backlog quota with policy producer_exception."""


class Fenced(Unavailable):
    """Another owner has taken the ledger or the topic over; this one gives it up."""


class StorageFailed(BrokerError):
    """The storage tier failed; what was acknowledged before is safe."""


class StorageFull(StorageFailed):
    """No room on the disk: reads go on, writes do not."""


class Corrupted(StorageFailed):
    """Stored bytes differ from those written."""


class WireError(Exception):
    """A peer sent what its protocol forbids: reply if possible, log it, close the connection."""


class PeerLeft(WireError):
    """The peer has ended the connection in order, so there is nothing to log."""
