"""Events of a Pulsar connection, as frozen values.

The hot ones come first (a whole run of messages is one event), then one for each other command that
a client may send. Their parts (`MessageId`, modes, features) are in `values.py`, and have the same
names here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from msgspec import Struct

from magnetar.wire.pulsar.values import NO_PROPERTIES as NOTHING
from magnetar.wire.pulsar.values import AccessMode as AccessMode
from magnetar.wire.pulsar.values import Features as Features
from magnetar.wire.pulsar.values import KeyShared as KeyShared
from magnetar.wire.pulsar.values import MessageId as MessageId
from magnetar.wire.pulsar.values import OriginalUser as OriginalUser
from magnetar.wire.pulsar.values import SchemaInfo as SchemaInfo
from magnetar.wire.pulsar.values import SubscriptionType as SubscriptionType
from magnetar.wire.pulsar.values import TopicsMode as TopicsMode
from magnetar.wire.pulsar.values import Txn as Txn

RUN_MESSAGES_MAX: Final = 1000
"""Messages in one `Sends`."""
RUN_BYTES_MAX: Final = 1024 * 1024
"""Bytes of payload in one `Sends`; a single larger message is a run of its own."""


# -- Hot -------------------------------------------------------------------------------------


class Sends(Struct, frozen=True, gc=False):
    """Messages (or batches) of one producer in order.

    A run never mixes producers, nor messages that differ in `chunks`, `marker`, `txn` or `origin`.
    """

    producer_id: int
    payloads: list[bytes]
    """The bytes to store: checksum part, metadata, payload."""
    sequences: list[bytes]
    """The sequence ids as bytes to echo in receipts; `hot.sequence_of` decodes one."""
    size: int
    """Bytes of all payloads."""
    counts: list[int] | None = None
    """Messages in each payload; None when every one holds a single message."""
    chunks: bool = False
    """Whether they are chunks of large messages."""
    marker: bool = False
    txn: Txn | None = None
    origin: MessageId | None = None
    """The original position of a replicated message."""


class BadChecksum(Struct, frozen=True, gc=False):
    """A message with a wrong checksum, which is refused."""

    producer_id: int
    sequence_id: int


class Acks(Struct, frozen=True, gc=False):
    """A consumer acknowledges messages.

    Individual: `ranges` in any order, consecutive ids already joined. Cumulative: everything up to
    one position, in `ranges` as a range of one entry, or in `partial` when only a part of the last
    batch is done; a command with more or fewer ids than one is as malformed as it looks here.
    """

    consumer_id: int
    cumulative: bool
    ranges: list[tuple[int, int, int]]
    """(ledger, first entry, last entry)."""
    partial: list[tuple[int, int, int, int]] = []
    """(ledger, entry, mask of indexes not yet acknowledged, size of the batch or 0)."""
    request_id: int | None = None
    """None if the client does not wait for a response."""
    txn: Txn | None = None
    validation_error: int | None = None
    """The `ValidationError` for which the client discards the message."""
    properties: Mapping[str, int] | None = None
    joined: list[tuple[int, int, int]] = []
    """(request id, ledger, entry) of commands of one transaction that are joined here, each with an
    answer of its own; `ranges` has their entries, and `request_id` is None."""


class Flow(Struct, frozen=True, gc=False):
    """A consumer permits this many more messages."""

    consumer_id: int
    permits: int


class Ping(Struct, frozen=True, gc=False):
    """PING."""


class Pong(Struct, frozen=True, gc=False):
    """PONG."""


# -- Connection ------------------------------------------------------------------------------


class Connect(Struct, frozen=True):
    """The first command of every client."""

    client_version: str
    protocol_version: int
    auth_method: str
    auth_data: bytes
    features: Features
    proxy_to_broker_url: str | None = None
    """The broker's address as a proxy's client has looked it up."""
    original_user: OriginalUser | None = None
    proxy_version: str = ""


class AuthResponse(Struct, frozen=True):
    """Answers an authentication challenge."""

    client_version: str
    protocol_version: int
    auth_method: str
    auth_data: bytes


class Lookup(Struct, frozen=True):
    """LOOKUP: requests the broker of a topic."""

    request_id: int
    topic: str
    authoritative: bool = False
    listener_name: str = ""
    original_user: OriginalUser | None = None
    properties: Mapping[str, str] = NOTHING


class PartitionedMetadata(Struct, frozen=True):
    """PARTITIONED_METADATA: requests the number of partitions."""

    request_id: int
    topic: str
    create: bool = True
    """Whether the topic may be created automatically."""
    original_user: OriginalUser | None = None


class TopicsOfNamespace(Struct, frozen=True):
    """GET_TOPICS_OF_NAMESPACE: requests the topics of a namespace."""

    request_id: int
    namespace: str
    mode: TopicsMode = TopicsMode.PERSISTENT
    pattern: str | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = NOTHING


# -- Producers and consumers -----------------------------------------------------------------


class Producer(Struct, frozen=True):
    """Attach a producer."""

    request_id: int
    producer_id: int
    topic: str
    name: str = ""
    """Empty: to be given by us."""
    name_is_users: bool = True
    epoch: int = 0
    access_mode: AccessMode = AccessMode.SHARED
    topic_epoch: int | None = None
    encrypted: bool = False
    transactional: bool = False
    initial_subscription: str = ""
    metadata: Mapping[str, str] = NOTHING
    schema: SchemaInfo | None = None


class Subscribe(Struct, frozen=True):
    """Attach a consumer."""

    request_id: int
    consumer_id: int
    topic: str
    subscription: str
    type: SubscriptionType
    consumer_name: str = ""
    priority_level: int = 0
    durable: bool = True
    start: MessageId | None = None
    start_rollback_seconds: int = 0
    from_earliest: bool = False
    """Where a subscription that does not exist yet begins."""
    read_compacted: bool = False
    create_topic: bool = True
    replicated: bool = False
    key_shared: KeyShared | None = None
    consumer_epoch: int | None = None
    metadata: Mapping[str, str] = NOTHING
    properties: Mapping[str, str] = NOTHING
    """Of the subscription."""
    schema: SchemaInfo | None = None


class CloseProducer(Struct, frozen=True):
    """Detach a producer once its messages are stored."""

    request_id: int
    producer_id: int


class CloseConsumer(Struct, frozen=True):
    """Detach; the subscription stays."""

    request_id: int
    consumer_id: int


class Unsubscribe(Struct, frozen=True):
    """Delete the subscription."""

    request_id: int
    consumer_id: int
    force: bool = False


class Seek(Struct, frozen=True):
    """Move the subscription to a position, or to a publish time (milliseconds)."""

    request_id: int
    consumer_id: int
    position: MessageId | None = None
    publish_time: int | None = None


class Redeliver(Struct, frozen=True):
    """Redeliver unacknowledged messages: those with these ids, or all if none is given."""

    consumer_id: int
    ids: tuple[MessageId, ...] = ()
    consumer_epoch: int | None = None


class GetLastMessageId(Struct, frozen=True):
    """Where does the topic end?"""

    request_id: int
    consumer_id: int


class ConsumerStats(Struct, frozen=True):
    """How is this consumer doing?"""

    request_id: int
    consumer_id: int


# -- Schemas ---------------------------------------------------------------------------------


class GetSchema(Struct, frozen=True):
    """The latest schema, or that version."""

    request_id: int
    topic: str
    version: bytes | None = None


class GetOrCreateSchema(Struct, frozen=True):
    """Register a schema, or find it."""

    request_id: int
    topic: str
    schema: SchemaInfo
    producer_name: str = ""


# -- Transactions ----------------------------------------------------------------------------


class TcConnect(Struct, frozen=True):
    """Is the transaction coordinator here?"""

    request_id: int
    coordinator_id: int


class NewTxn(Struct, frozen=True):
    """Begin a transaction; the time to live is in milliseconds."""

    request_id: int
    coordinator_id: int
    ttl_millis: int


class AddPartitionsToTxn(Struct, frozen=True):
    """The transaction will write to these topics."""

    request_id: int
    txn: Txn
    topics: tuple[str, ...]


class AddSubscriptionsToTxn(Struct, frozen=True):
    """The transaction will acknowledge in these (topic, subscription) pairs."""

    request_id: int
    txn: Txn
    subscriptions: tuple[tuple[str, str], ...]


class EndTxn(Struct, frozen=True):
    """Commit or abort."""

    request_id: int
    txn: Txn
    commit: bool


class EndTxnOnPartition(Struct, frozen=True):
    """From another broker's coordinator: the transaction ended, for this topic."""

    request_id: int
    txn: Txn
    commit: bool
    topic: str
    low_watermark: int = 0


class EndTxnOnSubscription(Struct, frozen=True):
    """From another broker's coordinator: the transaction ended, for this subscription."""

    request_id: int
    txn: Txn
    commit: bool
    topic: str
    subscription: str
    low_watermark: int = 0


# -- Watchers --------------------------------------------------------------------------------


class WatchTopics(Struct, frozen=True):
    """Tell me when topics that match come and go."""

    request_id: int
    watcher_id: int
    namespace: str
    pattern: str
    topics_hash: str | None = None


class CloseWatch(Struct, frozen=True):
    """Stop telling."""

    request_id: int
    watcher_id: int


Event = (
    Sends
    | BadChecksum
    | Acks
    | Flow
    | Ping
    | Pong
    | Connect
    | AuthResponse
    | Lookup
    | PartitionedMetadata
    | TopicsOfNamespace
    | Producer
    | Subscribe
    | CloseProducer
    | CloseConsumer
    | Unsubscribe
    | Seek
    | Redeliver
    | GetLastMessageId
    | ConsumerStats
    | GetSchema
    | GetOrCreateSchema
    | TcConnect
    | NewTxn
    | AddPartitionsToTxn
    | AddSubscriptionsToTxn
    | EndTxn
    | EndTxnOnPartition
    | EndTxnOnSubscription
    | WatchTopics
    | CloseWatch
)

ALL: Final[tuple[type, ...]] = get_args(Event)
