"""Upgrades classic groups to consumer groups, and downgrades them, with all their members. Pure.

In both directions, the stored form of one group is resumed by the other. Members keep their
partitions until the first heartbeat makes them rejoin. `consumer/classic.py` describes how members
of both kinds coexist in one group.
"""

from __future__ import annotations

from magnetar.wire.kafka.groups.classic import consumer_protocol
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.group_record import (
    StoredConsumer,
    StoredConsumerGroup,
    StoredGroup,
    StoredMember,
)
from magnetar.wire.kafka.groups.classic.member import ClassicMember
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.classic import (
    assignment_of,
    known,
    speaking,
    subscription_of,
)
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup
from magnetar.wire.kafka.groups.consumer.heartbeat import Topics


def moved_over(group: Group, topics: Topics) -> StoredConsumerGroup | None:
    """A classic group as a consumer group; None if the subscription of a member is unknown.

    A partition that is assigned to two members stays with one.
    """
    epoch = max(group.generation, 1)
    taken: set[TopicIdPartition] = set()
    readers = []
    for member in group.members:
        reader = _reader(member, epoch, topics, taken)
        if reader is None:
            return None
        taken |= reader.assigned
        readers.append(reader)
    requested = topics.ids_of(name for one in readers for name in one.names)
    return StoredConsumerGroup(
        epoch, {topic: topics.sizes[topic] for topic in requested}, tuple(readers)
    )


def _reader(
    member: ClassicMember, epoch: int, topics: Topics, taken: set[TopicIdPartition]
) -> StoredConsumer | None:
    request = member.request
    said = subscription_of(request)
    if said is None:
        return None
    task = consumer_protocol.assignment_in(member.assignment)
    given = task.assigned_partitions if task is not None else ()
    assigned = known(given, topics).difference(taken)
    return StoredConsumer(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=request.client_id,
        host=request.host,
        rebalance_seconds=request.rebalance_seconds,
        names=frozenset(said.topics),
        pattern="",
        assignor=None,
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
        revoking=frozenset(),
        target=assigned,
        classic=speaking(request),
    )


def moved_back(group: ConsumerGroup) -> StoredGroup:
    """A consumer group with classic members only as a classic group.

    Members may have different epochs; the highest is the generation.
    """
    classics = [(one, one.classic) for one in group.members.values() if one.classic is not None]
    assert len(classics) == len(group.members)
    members = []
    for member, classic in classics:
        said = consumer_protocol.subscription(member.names, classic.version)
        members.append(
            StoredMember(
                member_id=member.id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.host,
                session_seconds=classic.session_seconds,
                rebalance_seconds=member.rebalance_seconds,
                protocols=tuple((name, said) for name in classic.protocols),
                assignment=assignment_of(group, member.assigned, classic),
            )
        )
    return StoredGroup(
        generation=max(member.epoch for member, _ in classics),
        protocol_type=consumer_protocol.CONSUMER,
        protocol=classics[0][1].protocols[0],
        leader=members[0].member_id,
        members=tuple(members),
    )
