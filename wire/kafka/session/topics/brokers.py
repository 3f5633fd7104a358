"""Brokers as Kafka's clients see them: this one, and peers that own something.

A client hears addresses of the listener by which it came (KIP-103). A peer that has no such
listener cannot be named to it: the partition then has the error LISTENER_NOT_FOUND
(`KRaftMetadataCache.java` of 4.3), and a coordinator is not available.

What another broker owns is refused with NOT_LEADER_OR_FOLLOWER (`Broker.topic` says `NotOwned`) or
NOT_COORDINATOR: clients then ask Metadata or FindCoordinator again.
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
    """The brokers of the cluster, as they are shown to a caller."""

    def __init__(self, node_id: int, cluster_id: str, ownership: Ownership) -> None:
        self.node_id = node_id
        """Of this one."""
        self.cluster_id = cluster_id
        self._ownership = ownership

    def here(self, caller: Caller) -> MetadataBroker:
        """The one that the client is connected to."""
        host, port = caller.endpoint
        return MetadataBroker(node_id=self.node_id, host=host, port=port)

    def reached(self, caller: Caller, peer: Peer | None) -> MetadataBroker | None:
        """The broker that a client of this listener goes to; None if it cannot get there."""
        if peer is None:
            return self.here(caller)
        text = peer.addresses.get(caller.listener)
        if text is None:
            return None
        host, port = parsed(text)
        return MetadataBroker(node_id=peer.node_id, host=host, port=port)

    def all(self, caller: Caller) -> list[MetadataBroker]:
        """Those that a client of this listener can reach."""
        found = (self.reached(caller, peer) for peer in self._ownership.peers())
        return [self.here(caller), *(one for one in found if one is not None)]

    async def partition(
        self, caller: Caller, name: TopicName, index: int, leader_epoch: int
    ) -> MetadataPartition:
        """Who leads the partition: the owner of its topic (`name`). There is one copy, the
        leader's.
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
        """Who coordinates a group, or a transactional id; None if the client cannot get there."""
        ownership = self._ownership
        owner = await (ownership.transaction if of_transactions else ownership.group)(key)
        return self.reached(caller, owner)


async def ready(groups: GroupCoordinator, group_id: str) -> int:
    """Have the group loaded if it is ours; NOT_COORDINATOR if it is another broker's."""
    try:
        await groups.ready(group_id)
    except BrokerError as error:
        return commit_code(error)
    return NONE
