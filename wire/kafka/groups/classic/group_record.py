"""The stored form of a group's members, with which it survives a restart. Pure.

A classic group is stored with its last complete assignment; a rebalance in progress is not stored,
and its members rejoin. A consumer group is stored with the last state that each member has
received, and with its target assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done


class StoredMember(Struct, frozen=True, array_like=True):
    """A member of a classic group: the fields of its JoinGroup, and its assignment."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class StoredGroup(Struct, frozen=True, array_like=True, tag="classic"):
    """A classic group."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[StoredMember, ...]


class Classic(Struct, frozen=True, array_like=True):
    """The protocols of a classic member in a consumer group."""

    protocols: tuple[str, ...]
    """Its protocols, the preferred one first."""
    version: int
    """The version of its assignment's format."""
    session_seconds: float


class StoredConsumer(Struct, frozen=True, array_like=True):
    """A member of a consumer group: its subscription and its partitions."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    rebalance_seconds: float
    names: frozenset[str]
    pattern: str
    assignor: str | None
    epoch: int
    previous_epoch: int
    assigned: frozenset[tuple[bytes, int]]
    revoking: frozenset[tuple[bytes, int]]
    target: frozenset[tuple[bytes, int]]
    classic: Classic | None = None


class StoredConsumerGroup(Struct, frozen=True, array_like=True, tag="consumer"):
    """A consumer group (KIP-848)."""

    epoch: int
    sizes: dict[bytes, int]
    """The partition counts of subscribed topics on which the target assignment is based."""
    members: tuple[StoredConsumer, ...]


AnyStoredGroup = StoredGroup | StoredConsumerGroup
StoreGroup = Callable[[str, AnyStoredGroup | None, Done], None]
"""Stores the members of a group, or deletes them (None); `Done` is called when that is durable."""


def unheard(_: BrokerError | None) -> None:
    """A `Done` that ignores the result: a stored member that has left will expire."""


encode: Final = msgspec.msgpack.encode
decode: Final = msgspec.msgpack.Decoder(AnyStoredGroup).decode
