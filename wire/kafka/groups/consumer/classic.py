"""Members of the classic protocol in a consumer group (KIP-848, online migration). Pure.

An application migrates instance by instance. When the first member of the consumer protocol joins,
the classic group is upgraded with all its members (`groups/migration.py`); when the last one
leaves, it is downgraded. Meanwhile the server assigns partitions to members of both protocols:

    Heartbeat   REBALANCE_IN_PROGRESS, whenever rejoining would bring it nearer to its target
    JoinGroup   acts as a heartbeat of KIP-848, with its subscription and the partitions that it
                owns. The answer comes at once: its epoch as generation, and no leader
    SyncGroup   answers with its assignment

A member that has to rejoin has its rebalance timeout to do so, and as long again for SyncGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from magnetar.wire.kafka.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from magnetar.wire.kafka.groups.classic import consumer_protocol
from magnetar.wire.kafka.groups.classic.group_record import Classic
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup
from magnetar.wire.kafka.groups.consumer.heartbeat import JOIN, Heartbeat, Topics, by_topic
from magnetar.wire.kafka.groups.consumer.member import NEVER, ConsumerMember, MemberState
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerSubscription
from magnetar.wire.kafka.messages.parts import TopicPartitions


def subscription_of(request: Joining) -> ConsumerSubscription | None:
    """A member's subscription, if it is a consumer with valid metadata."""
    if request.protocol_type != consumer_protocol.CONSUMER or not request.protocols:
        return None
    return consumer_protocol.subscription_in(request.protocols[0][1])


def join(
    group: ConsumerGroup,
    request: Joining,
    said: ConsumerSubscription,
    new_id: Callable[[str], str],
    now: float,
) -> Joined:
    """Join or rejoin; the topics of its subscription were looked up before."""
    code = _refusal(group, request)
    member = group.members.get(request.member_id)
    before = group.static(request.instance_id)
    if code == NONE and before is not None and request.member_id not in ("", before.id):
        code = FENCED_INSTANCE_ID
    if code != NONE:
        return Joined(error_code=code, member_id=request.member_id)
    member_id = request.member_id or new_id(request.instance_id or request.client_id)
    if not request.member_id and request.id_required and request.instance_id is None:
        return Joined(error_code=MEMBER_ID_REQUIRED, member_id=member_id)
    if before is not None and before is not member:
        group.step_aside(before)
    goes_on = member is not None and member.classic is not None and not member.is_away
    response = group.heartbeat(
        _beat(group, request, said, member_id, member.epoch if member and goes_on else JOIN), now
    )
    if response.error_code != NONE:
        return Joined(error_code=response.error_code, member_id=request.member_id)
    member = group.members[member_id]
    member.answer_by = now + member.rebalance_seconds
    return Joined(
        generation=member.epoch,
        protocol_type=consumer_protocol.CONSUMER,
        protocol=request.names[0],
        member_id=member_id,
    )


def _refusal(group: ConsumerGroup, request: Joining) -> int:
    """The error code unless all classic members support a common protocol."""
    others = [
        set(one.classic.protocols)
        for one in group.members.values()
        if one.classic is not None and one.id != request.member_id
    ]
    shared = set(request.names).intersection(*others)
    return NONE if shared else INCONSISTENT_GROUP_PROTOCOL


def _beat(
    group: ConsumerGroup, request: Joining, said: ConsumerSubscription, member_id: str, epoch: int
) -> Heartbeat:
    return Heartbeat(
        member_id=member_id,
        epoch=epoch,
        instance_id=request.instance_id,
        rack_id=said.rack_id,
        rebalance_seconds=request.rebalance_seconds,
        names=frozenset(said.topics),
        pattern="",
        owned=known(said.owned_partitions, group.topics),
        client_id=request.client_id,
        host=request.host,
        classic=speaking(request),
    )


def speaking(request: Joining) -> Classic:
    """The protocols of a classic member with a valid subscription."""
    version = consumer_protocol.version_of(request.protocols[0][1])
    return Classic(tuple(request.names), version, request.session_seconds)


def known(said: Iterable[TopicPartitions], topics: Topics) -> frozenset[TopicIdPartition]:
    """The named partitions of existing topics."""
    return frozenset(
        (topics.ids[one.topic], number)
        for one in said
        if one.topic in topics.ids
        for number in one.partitions
    )


def sync(group: ConsumerGroup, request: Syncing, now: float) -> Synced:
    """Process SyncGroup; returns the assignment."""
    member, code = _known(group, request.member_id, request.generation, request.instance_id)
    if member is None:
        return Synced(error_code=code)
    assert member.classic is not None
    protocol = member.classic.protocols[0]
    spoken = ((request.protocol_type, consumer_protocol.CONSUMER), (request.protocol, protocol))
    if any(named not in (None, right) for named, right in spoken):
        return Synced(error_code=INCONSISTENT_GROUP_PROTOCOL)
    member.lives(now)
    group.due = 0.0
    # after a restart topics may not be looked up yet, and one without a name cannot be sent
    unnamed = {topic for topic, _ in member.assigned}.difference(group.topics.names)
    if unnamed or (
        member.epoch != group.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        return Synced(error_code=_to_come_again(member, now))
    member.answer_by = NEVER
    return Synced(
        protocol_type=consumer_protocol.CONSUMER,
        protocol=protocol,
        assignment=assignment_of(group, member.assigned, member.classic),
    )


def assignment_of(
    group: ConsumerGroup, partitions: set[TopicIdPartition], classic: Classic
) -> bytes:
    """The assignment, encoded for the member's protocol version."""
    names, found = group.topics.names, by_topic(partitions)
    named = {names[topic]: numbers for topic, numbers in found.items() if topic in names}
    return consumer_protocol.assignment(named, classic.version)


def heartbeat(
    group: ConsumerGroup, member_id: str, generation: int, instance_id: str | None, now: float
) -> int:
    """Process a heartbeat; the error code may request to rejoin."""
    member, code = _known(group, member_id, generation, instance_id)
    if member is None:
        return code
    member.lives(now)
    group.due = 0.0
    return _to_come_again(member, now) if group.may_advance(member) else NONE


def _to_come_again(member: ConsumerMember, now: float) -> int:
    member.answer_by = min(member.answer_by, now + member.rebalance_seconds)
    return REBALANCE_IN_PROGRESS


def leave(group: ConsumerGroup, member_id: str, instance_id: str | None) -> int:
    """Remove a member by its id, or by its instance id alone, as administrators do."""
    member = group.members.get(member_id) if instance_id is None else group.static(instance_id)
    if member is None or member.classic is None:
        return UNKNOWN_MEMBER_ID
    if member_id not in ("", member.id):
        return FENCED_INSTANCE_ID
    group.remove(member)
    return NONE


def _known(
    group: ConsumerGroup, member_id: str, generation: int, instance_id: str | None
) -> tuple[ConsumerMember | None, int]:
    """The member with that id, or the error."""
    member = group.members.get(member_id)
    static = group.static(instance_id)
    if instance_id is not None and static is not None and static is not member:
        return None, FENCED_INSTANCE_ID
    if member is None or member.classic is None or (instance_id is not None and static is None):
        return None, UNKNOWN_MEMBER_ID
    return (member, NONE) if member.epoch == generation else (None, ILLEGAL_GENERATION)
