"""Brokers as Kafka's clients are told of them: this one, and peers that own what is asked for.

A client hears addresses of the listener by which it came (KIP-103). A peer that has no such
listener cannot be named to it: the partition then has the error LISTENER_NOT_FOUND
(`KRaftMetadataCache.java` of 4.3), and a coordinator is not available.

What another broker owns is refused with NOT_LEADER_OR_FOLLOWER (`Broker.topic` says `NotOwned`) or
NOT_COORDINATOR: clients then ask Metadata or FindCoordinator again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.cluster.ownership import Peer
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.wire.kafka.addresses import parsed
from magnetar.wire.kafka.errors import LISTENER_NOT_FOUND, NONE
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.messages.basics import FoundBroker, FoundPartition

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.session import KafkaSession

NOBODY = -1
"""The id of a leader that cannot be named."""


def here(session: KafkaSession) -> FoundBroker:
    """Tell where we are."""
    host, port = session.address
    return FoundBroker(node_id=session.front.options.node_id, host=host, port=port)


def reached(session: KafkaSession, peer: Peer | None) -> FoundBroker | None:
    """The broker that a client of this listener goes to; None if it cannot get there."""
    if peer is None:
        return here(session)
    text = peer.addresses.get(session.listener)
    if text is None:
        return None
    host, port = parsed(text)
    return FoundBroker(node_id=peer.node_id, host=host, port=port)


def all_brokers(session: KafkaSession) -> list[FoundBroker]:
    """Those that a client of this listener can reach."""
    found = (reached(session, peer) for peer in session.broker.ownership.peers())
    return [here(session), *(one for one in found if one is not None)]


async def partition(
    session: KafkaSession, name: TopicName, index: int, leader_epoch: int
) -> FoundPartition:
    """Who leads the partition: the owner of its topic (`name`). There is one copy, the leader's."""
    leader = reached(session, await session.broker.ownership.topic(name))
    node = NOBODY if leader is None else leader.node_id
    nodes = [] if leader is None else [node]
    return FoundPartition(
        error_code=LISTENER_NOT_FOUND if leader is None else NONE,
        partition_index=index,
        leader_id=node,
        leader_epoch=leader_epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
    )


async def ready(session: KafkaSession, group_id: str) -> int:
    """Have the group loaded if it is ours; NOT_COORDINATOR if it is another broker's."""
    try:
        await session.front.groups.ready(group_id)
    except BrokerError as error:
        return commit_code(error)
    return NONE
