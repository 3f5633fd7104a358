"""The stored members of a group, with which it survives a restart. Pure.

A classic group is stored as of its last assignment: a rebalance under way is forgotten, and its
members rejoin. A group of the newer protocol is stored with what each member received last, and
with its target assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ports.ledger_store import Done


class StoredMember(Struct, frozen=True, array_like=True):
    """One member, with all that it said when it joined, and what it is to do."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class StoredGroup(Struct, frozen=True, array_like=True, tag="classic"):
    """A group of the classic protocol."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[StoredMember, ...]


class Classic(Struct, frozen=True, array_like=True):
    """How a member speaks that is in a group of the newer protocol by the classic one."""

    protocols: tuple[str, ...]
    """The protocols it knows, its favourite first."""
    version: int
    """Of the format of its assignment."""
    session_seconds: float


class StoredConsumer(Struct, frozen=True, array_like=True):
    """One member of a group of the newer protocol: what it wants, and what it has."""

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
    """A group of the newer protocol."""

    epoch: int
    sizes: dict[bytes, int]
    """Partitions of the topics that members want, as the target knows them."""
    members: tuple[StoredConsumer, ...]


AnyStoredGroup = StoredGroup | StoredConsumerGroup
StoreGroup = Callable[[str, AnyStoredGroup | None, Done], None]
"""Store the members of a group, or delete them (None); `Done` is called when that is durable."""


def unheard(_: BrokerError | None) -> None:
    """A `Done` that ignores the result: a stored member that has left expires by itself."""


encode: Final = msgspec.msgpack.encode
decode: Final = msgspec.msgpack.Decoder(AnyStoredGroup).decode
