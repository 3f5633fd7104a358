"""The brokers of the cluster for Kafka's clients: this one, and its peers.

A client gets the addresses of the listener to which it connected (KIP-103). A peer without that
listener has no address for it: its partitions have the error LISTENER_NOT_FOUND
(`KRaftMetadataCache.java` of 4.3), and its groups COORDINATOR_NOT_AVAILABLE.

A request for a topic of another broker gets NOT_LEADER_OR_FOLLOWER (`Broker.topic` raises
`NotOwned`), one for its groups NOT_COORDINATOR: clients then send Metadata or FindCoordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.cluster.ownership import Ownership, Peer
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.wire.kafka.addresses import parsed
from magnetar.wire.kafka.errors import LISTENER_NOT_FOUND, NONE
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.messages.basics import MetadataBroker, MetadataPartition

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.session.context import Caller

NO_NODE: Final = -1
"""The id of a leader that cannot be named."""


class Brokers:
    """The brokers of the cluster, with addresses for a caller."""

    def __init__(self, node_id: int, cluster_id: str, ownership: Ownership) -> None:
        self.node_id = node_id
        """The node id of this broker."""
        self.cluster_id = cluster_id
        self._ownership = ownership

    def here(self, caller: Caller) -> MetadataBroker:
        """The broker to which the client is connected."""
        host, port = caller.endpoint
        return MetadataBroker(node_id=self.node_id, host=host, port=port)

    def reached(self, caller: Caller, peer: Peer | None) -> MetadataBroker | None:
        """The address of a peer for this listener; None if it has no such listener."""
        if peer is None:
            return self.here(caller)
        text = peer.addresses.get(caller.listener)
        if text is None:
            return None
        host, port = parsed(text)
        return MetadataBroker(node_id=peer.node_id, host=host, port=port)

    def all(self, caller: Caller) -> list[MetadataBroker]:
        """The brokers with an address for this listener."""
        found = (self.reached(caller, peer) for peer in self._ownership.peers())
        return [self.here(caller), *(one for one in found if one is not None)]

    async def partition(
        self, caller: Caller, name: TopicName, index: int, leader_epoch: int
    ) -> MetadataPartition:
        """The partition with its leader, the owner of its topic (`name`). The leader is its only
        replica.
        """
        leader = self.reached(caller, await self._ownership.topic(name))
        node = NO_NODE if leader is None else leader.node_id
        nodes = [] if leader is None else [node]
        return MetadataPartition(
            error_code=LISTENER_NOT_FOUND if leader is None else NONE,
            partition_index=index,
            leader_id=node,
            leader_epoch=leader_epoch,
            replica_nodes=nodes,
            isr_nodes=nodes,
        )

    async def coordinator(
        self, caller: Caller, key: str, *, of_transactions: bool
    ) -> MetadataBroker | None:
        """The coordinator of a group or a transactional id; None without an address for it."""
        ownership = self._ownership
        owner = await (ownership.transaction if of_transactions else ownership.group)(key)
        return self.reached(caller, owner)


async def ready(groups: GroupCoordinator, group_id: str) -> int:
    """Load the group if this broker coordinates it; returns NOT_COORDINATOR if another does."""
    try:
        await groups.ready(group_id)
    except BrokerError as error:
        return commit_code(error)
    return NONE
