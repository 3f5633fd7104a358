"""FindCoordinator, and the membership requests of the classic group protocol.

FindCoordinator names the owner of a group or of a transactional id (`core/cluster/ownership.py`).
Requests about a group of another broker get NOT_COORDINATOR; clients then look up the coordinator
again (`AbstractCoordinator.java` of Kafka 4.3).

Members of the classic protocol may belong to a group of the newer one (KIP-848): then
`groups/consumer/classic.py` decides the responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_GROUP_ID,
    INVALID_REQUEST,
    INVALID_SESSION_TIMEOUT,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.consumer import classic
from magnetar.wire.kafka.messages.basics import (
    CoordinatorNode,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataBroker,
)
from magnetar.wire.kafka.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeaveMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from magnetar.wire.kafka.session import refusals, rights
from magnetar.wire.kafka.session.groups import classic_members
from magnetar.wire.kafka.session.topics.brokers import NO_NODE, Brokers, ready

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.consumer.lookups import Lookups
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.options import GroupOptions
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

ID_REQUIRED_VERSION: Final = 4
"""From this version on a new member gets an id with MEMBER_ID_REQUIRED, and joins again with it: a
client that repeats JoinGroup without an id does not leave dead members behind (KIP-394).
"""
SKIP_VERSION: Final = 9
"""From this version on a returning static leader may skip the assignment (KIP-814)."""
KEYS_VERSION: Final = 4
"""From this version on FindCoordinator has a list of keys (KIP-699)."""
MANY_VERSION: Final = 3
"""From this version on LeaveGroup has a list of members (KIP-345)."""
GROUP, TRANSACTION = 0, 1
NAMES_MAX: Final = 10_000
"""Keys of one FindCoordinator, or members of one LeaveGroup."""


class ClassicGroupHandlers:
    """FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(
        self, brokers: Brokers, groups: GroupCoordinator, lookups: Lookups, options: GroupOptions
    ) -> None:
        self._brokers = brokers
        self._groups = groups
        self._lookups = lookups
        self._options = options

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.FIND_COORDINATOR: self.on_find_coordinator,
            ApiKey.JOIN_GROUP: self.on_join_group,
            ApiKey.HEARTBEAT: self.on_heartbeat,
            ApiKey.LEAVE_GROUP: self.on_leave_group,
            ApiKey.SYNC_GROUP: self.on_sync_group,
        }

    async def on_find_coordinator(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        code, message, keys = NONE, None, request.coordinator_keys
        if len(keys) > NAMES_MAX:
            code, message, keys = INVALID_REQUEST, "these are too many", keys[:1]
        elif request.key_type not in (GROUP, TRANSACTION):
            code, message = (
                INVALID_REQUEST,
                f"nothing of type {request.key_type} is coordinated here",
            )
        if context.version < KEYS_VERSION:
            keys = [request.key]
        found = [
            await self._coordinator(context.caller, request.key_type, key)
            async for key in Cooperative(keys)
        ]
        for one in found if code != NONE else ():
            one.error_code, one.error_message = code, message
        first = found[0] if found else _found_coordinator("", self._brokers.here(context.caller))
        return FindCoordinatorResponse(
            error_code=first.error_code or code,
            error_message=first.error_message or message,
            node_id=first.node_id,
            host=first.host,
            port=first.port,
            coordinators=found if context.version >= KEYS_VERSION else [],
        )

    async def _coordinator(self, caller: Caller, key_type: int, key: str) -> CoordinatorNode:
        of_transactions = key_type == TRANSACTION
        kind = ResourceType.TRANSACTION if of_transactions else ResourceType.GROUP
        if not caller.must(Action.DESCRIBE, kind, key):
            refused = _found_coordinator(key, None)
            refused.error_code, refused.error_message = rights.CODES[kind], refusals.MESSAGE
            return refused
        return _found_coordinator(
            key, await self._brokers.coordinator(caller, key, of_transactions=of_transactions)
        )

    async def on_join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse:
        options = self._options
        code = NONE
        if not request.group_id:
            code = INVALID_GROUP_ID
        elif not options.session_ms_min <= request.session_timeout_ms <= options.session_ms_max:
            code = INVALID_SESSION_TIMEOUT
        else:
            code = await ready(self._groups, request.group_id)
        if code != NONE:
            return _joined(Joined(error_code=code, member_id=request.member_id))
        groups, joining = self._groups, _joining(context, request)
        while newer := groups.read_newer(request.group_id):
            joined = await classic_members.join(self._groups, self._lookups, newer, joining)
            if joined is not None:
                return _joined(joined)
        waiting = Completion[Joined]()
        groups.join(request.group_id, joining, waiting.done)
        return _joined(await waiting.result())

    async def on_sync_group(
        self, context: RequestContext, request: SyncGroupRequest
    ) -> SyncGroupResponse:
        code = await ready(self._groups, request.group_id)
        if code != NONE:
            return SyncGroupResponse(error_code=code, assignment=b"")
        groups = self._groups
        newer = groups.consumer(request.group_id)
        if newer is not None:
            return _synced(classic.sync(newer, _syncing(request), groups.now()))
        code, group = self._lookup(request.group_id)
        if group is None:
            return SyncGroupResponse(error_code=code, assignment=b"")
        waiting = Completion[Synced]()
        group.sync(_syncing(request), groups.now(), waiting.done)
        # only the leader's assignment counts: free a follower's while it waits
        del request
        return _synced(await waiting.result())

    def _lookup(self, group_id: str) -> tuple[int, Group | None]:
        """The group of a request, or the error."""
        group = self._groups.find(group_id)
        if group is None:
            return (UNKNOWN_MEMBER_ID if group_id else INVALID_GROUP_ID), None
        return NONE, group

    async def on_heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse:
        code = await ready(self._groups, request.group_id)
        if code != NONE:
            return HeartbeatResponse(error_code=code)
        groups = self._groups
        member = (request.member_id, request.generation_id, request.group_instance_id)
        heartbeat = (*member, groups.now())
        newer = groups.consumer(request.group_id)
        if newer is not None:
            return HeartbeatResponse(error_code=classic.heartbeat(newer, *heartbeat))
        code, group = self._lookup(request.group_id)
        return HeartbeatResponse(error_code=code if group is None else group.heartbeat(*heartbeat))

    async def on_leave_group(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> LeaveGroupResponse:
        if not request.group_id:
            return LeaveGroupResponse(error_code=INVALID_GROUP_ID)
        if len(request.members) > NAMES_MAX:
            return LeaveGroupResponse(error_code=INVALID_REQUEST)
        code = await ready(self._groups, request.group_id)
        if code != NONE:
            return LeaveGroupResponse(error_code=code)
        many = context.version >= MANY_VERSION
        leaving = request.members if many else [LeaveMember(member_id=request.member_id)]
        left = [
            LeftMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=self._leave(request.group_id, one),
            )
            for one in leaving
        ]
        if many:
            return LeaveGroupResponse(error_code=NONE, members=left)
        return LeaveGroupResponse(error_code=left[0].error_code)

    def _leave(self, group_id: str, member: LeaveMember) -> int:
        groups = self._groups
        newer = groups.consumer(group_id)
        if newer is not None:
            return classic.leave(newer, member.member_id, member.group_instance_id)
        code, group = self._lookup(group_id)
        if group is None:
            return code
        return group.leave(member.member_id, member.group_instance_id, groups.now())


def _found_coordinator(key: str, broker: MetadataBroker | None) -> CoordinatorNode:
    if broker is None:
        return CoordinatorNode(
            key=key,
            node_id=NO_NODE,
            host="",
            port=-1,
            error_code=COORDINATOR_NOT_AVAILABLE,
            error_message="the coordinator has no listener of this name",
        )
    return CoordinatorNode(
        key=key,
        node_id=broker.node_id,
        host=broker.host,
        port=broker.port,
        error_code=NONE,
        error_message=None,
    )


def _joining(context: RequestContext, request: JoinGroupRequest) -> Joining:
    rebalance_ms = request.rebalance_timeout_ms
    # version 0 has no rebalance timeout: Kafka takes the session timeout, too (KIP-62)
    return Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id,
        host=f"/{context.caller.host}",
        session_seconds=request.session_timeout_ms / 1000,
        rebalance_seconds=(rebalance_ms if rebalance_ms > 0 else request.session_timeout_ms) / 1000,
        protocol_type=request.protocol_type,
        protocols=tuple((one.name, one.metadata) for one in request.protocols),
        id_required=context.version >= ID_REQUIRED_VERSION,
        may_skip=context.version >= SKIP_VERSION,
    )


def _joined(result: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=result.error_code,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol if result.protocol is not None else "",
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinedMember(member_id=member_id, group_instance_id=instance, metadata=metadata)
            for member_id, instance, metadata in result.members
        ],
    )


def _synced(result: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )


def _syncing(request: SyncGroupRequest) -> Syncing:
    return Syncing(
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={one.member_id: one.assignment for one in request.assignments},
    )
