"""Requests of admin clients about groups: list, describe, delete, and delete offsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    INVALID_REQUEST,
    NON_EMPTY_GROUP,
    NONE,
    POLICY_VIOLATION,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.classic.consumer_protocol import CONSUMER
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.state import ClassicGroupState
from magnetar.wire.kafka.groups.coordinator import kind_of
from magnetar.wire.kafka.groups.group_records import CLASSIC
from magnetar.wire.kafka.groups.group_records import CONSUMER as NEWER
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.messages.consumer_groups import DescribedConsumerGroup
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from magnetar.wire.kafka.messages.groups import (
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
from magnetar.wire.kafka.messages.offsets import OffsetDeleteRequest, OffsetDeleteResponse
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors, TopicPartitions
from magnetar.wire.kafka.session.authorized_operations import operations
from magnetar.wire.kafka.session.topics.brokers import ready

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.classic.store import MemberStore
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.groups.offsets import Offsets
    from magnetar.wire.kafka.groups.subscriptions import Subscriptions
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

UNKNOWN_IS_AN_ERROR_VERSION: Final = 6
"""Before this version an unknown group has the state Dead and no error (KIP-1043)."""
NAMES_MAX: Final = 10_000
"""Groups or partitions of one request. DeleteGroups and the requests that describe groups have no
error code of the whole: with more names their response is empty.
"""

Described = TypeVar("Described", DescribedGroup, DescribedConsumerGroup)


class GroupToolHandlers:
    """DescribeGroups, ListGroups, DeleteGroups and OffsetDelete."""

    def __init__(
        self,
        groups: GroupCoordinator,
        offsets: Offsets,
        subscriptions: Subscriptions,
        records: GroupRecords,
        member_store: MemberStore,
        forget_if_unused: Callable[[str], Awaitable[None]],
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._subscriptions = subscriptions
        self._records = records
        self._member_store = member_store
        self._forget_if_unused = forget_if_unused

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_GROUPS: self.on_describe_groups,
            ApiKey.LIST_GROUPS: self.on_list_groups,
            ApiKey.DELETE_GROUPS: self.on_delete_groups,
            ApiKey.OFFSET_DELETE: self.on_offset_delete,
        }

    async def on_describe_groups(
        self, context: RequestContext, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse:
        groups = await described(
            request.groups,
            partial(self._described, context.version),
            context.caller if request.include_authorized_operations else None,
        )
        return DescribeGroupsResponse(groups=groups)

    async def _described(self, version: int, group_id: str) -> DescribedGroup:
        code = await ready(self._groups, group_id)
        group = self._groups.find(group_id) if code == NONE else None
        group_response = DescribedGroup(
            error_code=code,
            group_id=group_id,
            group_state=ClassicGroupState.EMPTY.value,
            protocol_type="",
            protocol_data="",
            members=[],
        )
        if code != NONE:
            return group_response
        try:
            if group is not None and group.in_use:
                group_response.group_state = group.state.value
                group_response.protocol_type = group.protocol_type or ""
                group_response.protocol_data = (
                    (group.protocol or "") if group.state is ClassicGroupState.STABLE else ""
                )
                group_response.members = _members(group)
            elif not await self._describe_stored(group_response):
                group_response.group_state = ClassicGroupState.DEAD.value
                if version >= UNKNOWN_IS_AN_ERROR_VERSION:
                    group_response.error_code = GROUP_ID_NOT_FOUND
                    group_response.error_message = f"there is no group {group_id}"
        except BrokerError as error:
            group_response.error_code = commit_code(error)
        return group_response

    async def _describe_stored(self, group_response: DescribedGroup) -> bool:
        """Describe a group without Kafka members; its subscriptions may have Pulsar's consumers.

        False if there is none, or if it is of the newer protocol, which has its own request.
        """
        record = await self._records.find(group_response.group_id)
        if record is not None:
            if record.kind == NEWER:
                return False
            group_response.protocol_type = record.protocol_type
        members = await self._subscriptions.attached(group_response.group_id)
        if members:
            group_response.group_state, group_response.protocol_type = (
                ClassicGroupState.STABLE.value,
                CONSUMER,
            )
            group_response.members = [_pulsars(consumer, where) for where, consumer in members]
        return bool(record or members or await self._subscriptions.topics(group_response.group_id))

    async def on_list_groups(
        self, context: RequestContext, request: ListGroupsRequest
    ) -> ListGroupsResponse:
        try:
            found = await self._listed()
        except BrokerError as error:
            return ListGroupsResponse(error_code=commit_code(error), groups=[])
        caller = context.caller
        if not caller.may(Action.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
            found = [
                one
                for one in found
                if caller.may(Action.DESCRIBE, ResourceType.GROUP, one.group_id)
            ]
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        return ListGroupsResponse(
            error_code=NONE,
            groups=[
                one
                for one in found
                if (not states or one.group_state.lower() in states)
                and (not types or one.group_type in types)
            ],
        )

    async def _listed(self) -> list[ListedGroup]:
        """Groups that this broker coordinates, Pulsar's subscriptions included."""
        stored = set(await self._records.names())
        found: dict[str, ListedGroup] = {}
        async for group_id in Cooperative({*stored, *await self._subscriptions.names()}):
            if not await self._records.is_ours(group_id):
                continue  # clients ask every broker
            record = await self._records.find(group_id) if group_id in stored else None
            attached = bool(await self._subscriptions.attached(group_id))
            found[group_id] = ListedGroup(
                group_id=group_id,
                protocol_type=CONSUMER if attached else record.protocol_type if record else "",
                group_state=(
                    ClassicGroupState.STABLE if attached else ClassicGroupState.EMPTY
                ).value,
                group_type=record.kind if record else CLASSIC,
            )
        for group in self._groups.all():
            if group.in_use:
                kind, protocol_type = kind_of(group)
                found[group.id] = ListedGroup(
                    group_id=group.id,
                    protocol_type=protocol_type,
                    group_state=group.state.value,
                    group_type=kind,
                )
        return [found[group_id] for group_id in sorted(found)]

    async def on_delete_groups(
        self, context: RequestContext, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        names = request.groups_names if len(request.groups_names) <= NAMES_MAX else []
        return DeleteGroupsResponse(
            results=[
                DeletedGroup(group_id=group_id, error_code=await self._delete(group_id))
                for group_id in names
            ]
        )

    async def _delete(self, group_id: str) -> int:
        """Delete a group without members; offsets first, so that a failed attempt can be repeated.

        The group's record is claimed before, and verified before each offset goes: a coordinator
        that was replaced deletes nothing that the present one's members have committed.

        A subscription that only Pulsar's clients have used is theirs to delete.
        """
        code = await ready(self._groups, group_id)
        if code != NONE:
            return code
        if self._groups.in_use(group_id):
            return NON_EMPTY_GROUP
        try:
            record = await self._records.claim(group_id)
            partitions = await self._subscriptions.partitions(group_id)
            if record is None and self._groups.find(group_id) is None:
                return POLICY_VIOLATION if partitions else GROUP_ID_NOT_FOUND
            for partition in partitions:
                if self._groups.in_use(group_id):
                    return NON_EMPTY_GROUP
                await self._records.verify(group_id)
                code = await self._offsets.forget(group_id, partition)
                if code != NONE:
                    return code
            if not self._groups.in_use(group_id):
                await self._member_store.forget(group_id)
                await self._records.delete(group_id)
        except BrokerError as error:
            return commit_code(error)
        if not self._groups.in_use(group_id):
            self._groups.forget(group_id)
        return NONE

    async def on_offset_delete(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse:
        if sum(len(topic.partitions) for topic in request.topics) > NAMES_MAX:
            return OffsetDeleteResponse(error_code=INVALID_REQUEST, topics=[])
        try:
            await self._groups.ready(request.group_id)
            requested = await self._subscribed(request.group_id)
        except KafkaRefusal as error:
            return OffsetDeleteResponse(error_code=error.code, topics=[])
        except BrokerError as error:
            return OffsetDeleteResponse(error_code=commit_code(error), topics=[])
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                where = (topic.name, part.partition_index)
                code = GROUP_SUBSCRIBED_TO_TOPIC
                if topic.name not in requested:
                    code = await self._forget(request.group_id, where)
                parts.append(PartitionError(partition_index=part.partition_index, error_code=code))
            topics.append(TopicErrors(name=topic.name, partitions=parts))
        with suppress(BrokerError):  # the expiry of offsets tries it again
            await self._forget_if_unused(request.group_id)
        return OffsetDeleteResponse(error_code=NONE, topics=topics)

    async def _forget(self, group_id: str, where: TopicPartition) -> int:
        try:
            await self._records.verify(group_id)
        except BrokerError as error:
            return commit_code(error)
        return await self._offsets.forget(group_id, where)

    async def _subscribed(self, group_id: str) -> set[str]:
        """Topics that members subscribe to, whose offsets may not be deleted (KIP-496).

        Raises `KafkaRefusal` for an unknown group, and for members of another protocol type, whose
        topics are unknown.
        """
        if self._groups.in_use(group_id):
            requested = self._groups.subscribed_topics(group_id)
            if requested is None:
                raise KafkaRefusal(NON_EMPTY_GROUP)
            return requested
        if await self._records.claim(group_id) is None:
            raise KafkaRefusal(GROUP_ID_NOT_FOUND)
        return set()


async def described(
    names: Sequence[str],
    describe: Callable[[str], Awaitable[Described]],
    authorized: Caller | None,
) -> list[Described]:
    """The description of each group, of either protocol; empty for too many names. If a client is
    given, with the operations that it is authorized to.
    """
    requested = names if len(names) <= NAMES_MAX else ()
    found = [await describe(group_id) async for group_id in Cooperative(requested)]
    if authorized is not None:
        for one in found:
            one.authorized_operations = operations(authorized, ResourceType.GROUP, one.group_id)
    return found


def _members(group: Group) -> list[DescribedMember]:
    protocol = group.protocol if group.state is ClassicGroupState.STABLE else None
    return [
        DescribedMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.request.client_id,
            client_host=member.request.host,
            member_metadata=member.metadata(protocol) if protocol else b"",
            member_assignment=member.assignment if protocol else b"",
        )
        for member in group.members
    ]


def _pulsars(consumer: Consumer, where: TopicPartition) -> DescribedMember:
    """A consumer of Pulsar, described as a member that has one partition."""
    assigned = ConsumerAssignment(
        assigned_partitions=[TopicPartitions(topic=where[0], partitions=[where[1]])]
    )
    requested = ConsumerSubscription(topics=[where[0]])
    return DescribedMember(
        member_id=f"{consumer.name}-{consumer.id}-{where[0]}-{where[1]}",
        client_id=consumer.name,
        client_host=f"/{consumer.request.address.rpartition(':')[0]}",
        member_metadata=b"\0\0" + b"".join(encoder(ConsumerSubscription, 0, False)(requested)),
        member_assignment=b"\0\0" + b"".join(encoder(ConsumerAssignment, 0, False)(assigned)),
    )
