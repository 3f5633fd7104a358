"""Values in events and replies: ids, modes, features of a peer.

Ids are uint64 in PulsarApi.proto, where clients send the highest value for -1. Here they are
signed: "earliest" is `MessageId(-1, -1)`. A transaction's id is (most significant bits, least
significant bits), as Pulsar prints it. Bit masks of batch indexes (PIP-54) are plain integers: bit
i is 1 while index i is NOT yet acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

Txn = tuple[int, int]

NO_PROPERTIES: Final[Mapping[str, str]] = {}


class MessageId(Struct, frozen=True):
    """A position in a topic."""

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    ack_mask: int | None = None
    batch_size: int = 0
    first_chunk: MessageId | None = None


class Features(Struct, frozen=True):
    """The features that a peer declares (FeatureFlags in PulsarApi.proto)."""

    auth_refresh: bool = False
    broker_entry_metadata: bool = False
    partial_producer: bool = False
    topic_watchers: bool = False
    partitioned_metadata_without_creation: bool = False
    replication_dedup_by_position: bool = False
    topic_watcher_reconcile: bool = False
    scalable_topics: bool = False
    transaction_discovery: bool = False


class SchemaInfo(Struct, frozen=True):
    """A schema as a client describes it; `kind` is the protocol's number."""

    name: str
    kind: int
    data: bytes
    properties: Mapping[str, str]


class OriginalUser(Struct, frozen=True):
    """The role on whose behalf a proxy connects."""

    principal: str
    auth_data: str
    auth_method: str


class AccessMode(IntEnum):
    """How a producer shares its topic."""

    SHARED = 0
    EXCLUSIVE = 1
    WAIT_FOR_EXCLUSIVE = 2
    EXCLUSIVE_WITH_FENCING = 3


class SubscriptionType(IntEnum):
    """How the consumers of a subscription share it."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3


class TopicsMode(IntEnum):
    """Which topics of a namespace are requested."""

    PERSISTENT = 0
    NON_PERSISTENT = 1
    ALL = 2


class KeyShared(Struct, frozen=True):
    """The key-sharing mode of a consumer (KeySharedMeta)."""

    sticky: bool
    ranges: tuple[tuple[int, int], ...] = ()
    """Hash ranges, both ends included."""
    out_of_order_allowed: bool = False
