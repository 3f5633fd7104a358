"""Ownership: the port that answers which broker owns a name.

A topic, a group and a transaction each have one owner at a time. The owner is this broker, or a
peer, whose addresses clients are sent to. Protocols ask here wherever they tell a client where to
go (Pulsar's LOOKUP, Kafka's Metadata and FindCoordinator, HTTP's lookup), and brokers ask here
before they load something. What is loaded is owned, so nothing is asked per message.

An answer may be out of date when it arrives. That costs a client a detour and corrupts nothing:
every durable record is written over the version that its owner knows (`owned_record.py`).

`AloneHere` is today's only implementation: one broker, which owns everything. `OwnershipTable` is
the fake that ships with the port; tests fill it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from magnetar.core.kernel.names import TopicName


class Peer(Struct, frozen=True):
    """Another broker of the cluster, and where its clients connect."""

    node_id: int
    """Its node id for Kafka's clients."""
    addresses: Mapping[str, str] = {}
    """`host:port` by listener: `pulsar`, `pulsar_tls`, `kafka`, `mqtt`, `http` and so on."""

    @property
    def broker_id(self) -> str:
        """`host:port` of HTTP, the id of a broker in Pulsar."""
        return self.addresses.get("http") or self.addresses.get("https", "")


class Ownership(Protocol):
    """Each method returns the peer that owns the name, or None if this broker does."""

    async def topic(self, name: TopicName) -> Peer | None:
        """The owner of a topic. Each partition has an owner of its own."""
        ...

    async def group(self, group_id: str) -> Peer | None:
        """The coordinator of a consumer group."""
        ...

    async def transaction(self, name: str) -> Peer | None:
        """The coordinator of a transactional id."""
        ...

    def peers(self) -> Sequence[Peer]:
        """All other live brokers of the cluster."""
        ...


class AloneHere:
    """One broker, which owns everything."""

    async def topic(self, name: TopicName) -> Peer | None:
        return None

    async def group(self, group_id: str) -> Peer | None:
        return None

    async def transaction(self, name: str) -> Peer | None:
        return None

    def peers(self) -> Sequence[Peer]:
        return ()


ALONE: Final[Ownership] = AloneHere()


class OwnershipTable:
    """Tables that a test fills; a name in no table is owned here."""

    def __init__(self, *peers: Peer) -> None:
        self._peers = peers
        self.topics: dict[str, Peer] = {}
        """By full name, of a topic without partitions or of one partition."""
        self.groups: dict[str, Peer] = {}
        self.transactions: dict[str, Peer] = {}

    async def topic(self, name: TopicName) -> Peer | None:
        return self.topics.get(name.full)

    async def group(self, group_id: str) -> Peer | None:
        return self.groups.get(group_id)

    async def transaction(self, name: str) -> Peer | None:
        return self.transactions.get(name)

    def peers(self) -> Sequence[Peer]:
        return self._peers
