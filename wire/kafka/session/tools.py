"""What tools ask of groups: which there are, who is in them, and to be rid of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokerError, SubscriptionNotFound, TopicNotFound
from wire.kafka.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    NON_EMPTY_GROUP,
    NONE,
    code_of,
)
from wire.kafka.groups.group import Group, State
from wire.kafka.groups.registry import Partition
from wire.kafka.messages.groups import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from wire.kafka.messages.offsets import OffsetDeleteRequest, OffsetDeleteResponse
from wire.kafka.messages.parts import PartitionError, TopicErrors

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

CLASSIC: Final = "classic"
UNKNOWN_IS_AN_ERROR_VERSION: Final = 6
"""Before it, a group that nobody knows is described as a dead one."""


async def on_describe_groups(session: KafkaSession, asked: Asked) -> DescribeGroupsResponse:
    request = asked.request
    assert isinstance(request, DescribeGroupsRequest)
    stored = await session.front.registry.groups()
    return DescribeGroupsResponse(
        groups=[_described(session, group_id, stored, asked.version) for group_id in request.groups]
    )


def _described(
    session: KafkaSession, group_id: str, stored: list[str], version: int
) -> DescribedGroup:
    group = session.front.groups.find(group_id)
    told = DescribedGroup(
        error_code=NONE,
        group_id=group_id,
        group_state=State.EMPTY.value,
        protocol_type="",
        protocol_data="",
        members=[],
    )
    if group is not None:
        told.group_state = group.state.value
        told.protocol_type = group.protocol_type or ""
        told.protocol_data = group.protocol or ""
        told.members = _members(group)
    elif group_id not in stored:
        told.group_state = State.DEAD.value
        if version >= UNKNOWN_IS_AN_ERROR_VERSION:
            told.error_code = GROUP_ID_NOT_FOUND
            told.error_message = f"there is no group {group_id}"
    return told


def _members(group: Group) -> list[DescribedMember]:
    protocol = group.protocol if group.state is State.STABLE else None
    return [
        DescribedMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.request.client_id,
            client_host=member.request.host,
            member_metadata=member.metadata(protocol) if protocol else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]


async def on_list_groups(session: KafkaSession, asked: Asked) -> ListGroupsResponse:
    request = asked.request
    assert isinstance(request, ListGroupsRequest)
    found = {
        group_id: ListedGroup(
            group_id=group_id, protocol_type="", group_state=State.EMPTY.value, group_type=CLASSIC
        )
        for group_id in await session.front.registry.groups()
    }
    for group in session.front.groups.all():
        if group.state is not State.EMPTY or group.id in found:
            found[group.id] = ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        error_code=NONE,
        groups=[
            one
            for one in found.values()
            if (not states or one.group_state.lower() in states) and (not types or CLASSIC in types)
        ],
    )


async def on_delete_groups(session: KafkaSession, asked: Asked) -> DeleteGroupsResponse:
    request = asked.request
    assert isinstance(request, DeleteGroupsRequest)
    return DeleteGroupsResponse(
        results=[
            DeletedGroup(group_id=group_id, error_code=await _delete(session, group_id))
            for group_id in request.groups_names
        ]
    )


async def _delete(session: KafkaSession, group_id: str) -> int:
    """Only where nobody is in it; offsets first, so that a try that fails can be repeated."""
    front = session.front
    group = front.groups.find(group_id)
    if group is not None and group.state is not State.EMPTY:
        return NON_EMPTY_GROUP
    partitions = await front.registry.partitions(group_id)
    if group is None and not partitions:
        return GROUP_ID_NOT_FOUND
    for partition in sorted(partitions):
        code = await _forget(session, group_id, partition)
        if code != NONE:
            return code
    front.groups.forget(group_id)
    return NONE


async def _forget(session: KafkaSession, group_id: str, partition: Partition) -> int:
    """Delete what a group has committed of one partition."""
    try:
        # gone with its topic, or on the list and never committed
        with suppress(TopicNotFound, SubscriptionNotFound):
            log = await session.front.logs.get(*partition)
            await log.topic.unsubscribe(group_id, force=False)
        await session.front.registry.remove(group_id, partition)
    except BrokerError as error:
        return code_of(error)
    return NONE


async def on_offset_delete(session: KafkaSession, asked: Asked) -> OffsetDeleteResponse:
    request = asked.request
    assert isinstance(request, OffsetDeleteRequest)
    group = session.front.groups.find(request.group_id)
    if group is None and not await session.front.registry.partitions(request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_ID_NOT_FOUND, topics=[])
    in_use = group is not None and group.state is not State.EMPTY
    topics = []
    for topic in request.topics:
        parts = []
        for part in topic.partitions:
            where = (topic.name, part.partition_index)
            code = GROUP_SUBSCRIBED_TO_TOPIC
            if not in_use:
                code = await _forget(session, request.group_id, where)
            parts.append(PartitionError(partition_index=part.partition_index, error_code=code))
        topics.append(TopicErrors(name=topic.name, partitions=parts))
    return OffsetDeleteResponse(error_code=NONE, topics=topics)


HANDLERS: Final[Mapping[int, Any]] = {
    15: on_describe_groups,
    16: on_list_groups,
    42: on_delete_groups,
    47: on_offset_delete,
}
