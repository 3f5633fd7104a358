"""Everything that can go wrong in the broker, as one small tree.

    BrokerError
      NotFound             TopicNotFound, SubscriptionNotFound, ConsumerNotFound,
                           NamespaceNotFound, LedgerNotFound, EntryNotFound
      Conflict             AlreadyExists, BadVersion, ConsumerBusy, ProducerBusy, ProducerFenced,
                           HashRangeTaken, SubscriptionBusy
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
    """Base of all domain errors; its text is shown to users, so it is a sentence for them."""


class NotFound(BrokerError):
    """What was named does not exist."""


class TopicNotFound(NotFound):
    """No such topic, and it may not be created."""


class SubscriptionNotFound(NotFound):
    """No such subscription, and it may not be created."""


class ConsumerNotFound(NotFound):
    """No such consumer: it is not attached."""


class NamespaceNotFound(NotFound):
    """No such tenant or namespace."""


class LedgerNotFound(NotFound):
    """No such ledger: certain, not a guess (a negative answer is a promise)."""


class EntryNotFound(NotFound):
    """No such entry: certain, not a guess."""


class Conflict(BrokerError):
    """Another client holds it."""


class AlreadyExists(Conflict):
    """Create found one."""


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


class Refused(BrokerError):
    """The request is understood and will not be done."""


class NotAllowed(Refused):
    """Forbidden by a policy or by the state of things."""


class Invalid(Refused):
    """A field of the request makes no sense."""


class InvalidName(Invalid):
    """A topic, namespace, tenant or subscription name that may not exist."""


class ChecksumMismatch(Refused):
    """The payload is not what its producer sent."""


class Terminated(Refused):
    """The topic is closed for writing for ever."""


class Unsupported(Refused):
    """A feature this server does not have."""


class Unauthenticated(Refused):
    """Who are you?"""


class Unauthorized(Refused):
    """We know who you are, and no."""


class IncompatibleSchema(Refused):
    """The schema does not fit the topic's."""


class Unavailable(BrokerError):
    """Not now; trying again may help."""


class NotReady(Unavailable):
    """Being loaded, unloaded or moved."""


class NotOwned(Unavailable):
    """Another broker owns the topic: clients look it up again, and are sent there."""

    def __init__(self, text: str = "", addresses: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.addresses: Mapping[str, str] = addresses or {}
        """Of the owner, by listener, as far as they are known (`core/cluster/ownership.py`)."""


class NotCoordinator(Unavailable):
    """Another broker coordinates the group or the transaction."""


class Overloaded(Unavailable):
    """A limit of this server is reached."""


class QuotaHeld(Unavailable):
    """Backlog quota with policy producer_request_hold."""


class QuotaExceeded(Unavailable):
    """Backlog quota with policy producer_exception."""


class Fenced(Unavailable):
    """Another owner took the ledger or the topic over: it must be let go here."""


class StorageFailed(BrokerError):
    """The storage tier could not do it; what was acknowledged before is safe."""


class StorageFull(StorageFailed):
    """No room on the disk: reads go on, writes do not."""


class Corrupted(StorageFailed):
    """Stored bytes are not what was written."""


class WireError(Exception):
    """A peer sent what its protocol forbids. Tell it, log one line, close that connection."""
