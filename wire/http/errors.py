"""The HTTP status code of each of our errors.

The table names every leaf of `core.kernel.errors` (a test checks it). The codes are those that
Pulsar's admin tools and client suites expect: 401 without an identity, 403 without the right, 404
missing, 409 exists, 412 not possible in this state or an invalid name, 405 not supported. The body
is always `{"reason": ...}`.
"""

from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel import errors

STATUS: Final[Mapping[type[errors.BrokerError], int]] = {
    errors.NotFound: 404,
    errors.TopicNotFound: 404,
    errors.SubscriptionNotFound: 404,
    errors.ConsumerNotFound: 404,
    errors.NamespaceNotFound: 404,
    errors.LedgerNotFound: 404,
    errors.EntryNotFound: 404,
    errors.TransactionNotFound: 404,
    errors.AlreadyExists: 409,
    errors.BadVersion: 409,
    errors.ConsumerBusy: 412,
    errors.SubscriptionBusy: 412,
    errors.ProducerBusy: 412,
    errors.ProducerFenced: 412,
    errors.HashRangeTaken: 412,
    errors.TransactionConflict: 409,
    errors.WrongTransactionState: 409,
    errors.NotAllowed: 412,
    errors.Invalid: 400,
    errors.InvalidName: 412,
    errors.ChecksumMismatch: 400,
    errors.Terminated: 412,
    errors.Unsupported: 405,
    errors.Unauthenticated: 401,
    errors.Unauthorized: 403,
    errors.IncompatibleSchema: 409,
    errors.NotReady: 503,
    # If the owner's address is known, the answer is a redirect (307) instead.
    errors.NotOwned: 503,
    errors.NotCoordinator: 503,
    errors.Overloaded: 503,
    errors.QuotaHeld: 412,
    errors.QuotaExceeded: 412,
    errors.Fenced: 503,
    errors.StorageFailed: 500,
    errors.StorageFull: 503,
    errors.Corrupted: 500,
}


def status_of(error: errors.BrokerError) -> int:
    """The status of an error: that of its nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500
