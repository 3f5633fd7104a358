"""Kafka's error codes, and the mapping of the broker's errors to them.

The table has every leaf of `core/kernel/errors.py` (a test checks it). Clients act on codes: they
retry on some, look for another broker first on others, and raise the rest (`Errors.java` of Kafka
4.3).
"""

from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel import errors

UNKNOWN: Final = -1
NONE: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC: Final = 3
NOT_LEADER: Final = 6
REQUEST_TIMED_OUT: Final = 7
MESSAGE_TOO_LARGE: Final = 10
OFFSET_METADATA_TOO_LARGE: Final = 12
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
INVALID_TOPIC: Final = 17
NOT_ENOUGH_REPLICAS: Final = 19
INVALID_REQUIRED_ACKS: Final = 21
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_GROUP_ID: Final = 24
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
INVALID_CONFIG: Final = 40
INVALID_REQUEST: Final = 42
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER: Final = 45
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
INVALID_TRANSACTION_TIMEOUT: Final = 50
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54
OPERATION_NOT_ATTEMPTED: Final = 55
STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
SASL_AUTHENTICATION_FAILED: Final = 58
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
LISTENER_NOT_FOUND: Final = 72
UNKNOWN_LEADER_EPOCH: Final = 75
UNSUPPORTED_COMPRESSION: Final = 76
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
INVALID_RECORD: Final = 87
UNSTABLE_OFFSET_COMMIT: Final = 88
THROTTLING_QUOTA_EXCEEDED: Final = 89
PRODUCER_FENCED: Final = 90
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93
UNKNOWN_TOPIC_ID: Final = 100
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
INVALID_REGULAR_EXPRESSION: Final = 128

CODES: Final[Mapping[type[errors.BrokerError], int]] = {
    errors.TopicNotFound: UNKNOWN_TOPIC,
    errors.SubscriptionNotFound: RESOURCE_NOT_FOUND,
    errors.ConsumerNotFound: RESOURCE_NOT_FOUND,
    errors.NamespaceNotFound: UNKNOWN_TOPIC,
    errors.LedgerNotFound: STORAGE_ERROR,
    errors.EntryNotFound: STORAGE_ERROR,
    errors.TransactionNotFound: TRANSACTIONAL_ID_NOT_FOUND,
    errors.AlreadyExists: TOPIC_ALREADY_EXISTS,
    # clients retry on both codes, as is right after a lost race
    errors.BadVersion: REQUEST_TIMED_OUT,
    errors.ConsumerBusy: POLICY_VIOLATION,
    errors.ProducerBusy: POLICY_VIOLATION,
    errors.ProducerFenced: POLICY_VIOLATION,
    errors.HashRangeTaken: INVALID_REQUEST,
    errors.SubscriptionBusy: REQUEST_TIMED_OUT,
    errors.TransactionConflict: INVALID_TXN_STATE,
    errors.WrongTransactionState: INVALID_TXN_STATE,
    errors.NotAllowed: POLICY_VIOLATION,
    errors.Invalid: INVALID_REQUEST,
    errors.InvalidName: INVALID_TOPIC,
    errors.ChecksumMismatch: CORRUPT_MESSAGE,
    errors.Terminated: POLICY_VIOLATION,
    errors.Unsupported: UNSUPPORTED_VERSION,
    errors.Unauthenticated: SASL_AUTHENTICATION_FAILED,
    errors.Unauthorized: TOPIC_AUTHORIZATION_FAILED,
    errors.IncompatibleSchema: INVALID_RECORD,
    # clients refresh their metadata, and return to this broker a moment later
    errors.NotReady: NOT_LEADER,
    # clients refresh their metadata, which names the owner of the partition
    errors.NotOwned: NOT_LEADER,
    # clients send FindCoordinator again (`AbstractCoordinator.java` and
    # `TransactionManager.java` of 4.3).
    errors.NotCoordinator: NOT_COORDINATOR,
    # every client retries until its delivery timeout; librdkafka 2.15 and Sarama give up
    # at THROTTLING_QUOTA_EXCEEDED, which is for requests of administrators (KIP-599).
    errors.Overloaded: NOT_ENOUGH_REPLICAS,
    errors.QuotaHeld: NOT_ENOUGH_REPLICAS,
    errors.QuotaExceeded: POLICY_VIOLATION,
    errors.Fenced: NOT_LEADER,
    errors.StorageFailed: STORAGE_ERROR,
    errors.StorageFull: STORAGE_ERROR,
    errors.Corrupted: STORAGE_ERROR,
}


class KafkaRefusal(Exception):
    """A refusal with an error code that only Kafka has."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code


REASON_CHARACTERS_MAX: Final = 1_000
"""Characters of an error message. It may quote the request, and versions that are not flexible
cannot encode a string of more than 32,767 bytes.
"""


def code_and_message(error: errors.BrokerError | KafkaRefusal) -> tuple[int, str]:
    """The error code and the message."""
    return code_of(error), str(error)[:REASON_CHARACTERS_MAX]


def code_of(error: errors.BrokerError | KafkaRefusal) -> int:
    """Kafka's error code for an error of the broker."""
    if isinstance(error, KafkaRefusal):
        return error.code
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return UNKNOWN
