"""Groups: joining, syncing, staying, leaving; and who coordinates (we do)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from wire.kafka.errors import (
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from wire.kafka.groups.member import Joined, Joining, Synced
from wire.kafka.messages.basics import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)
from wire.kafka.messages.groups import (
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

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

SESSION_MS_MIN: Final = 6_000
SESSION_MS_MAX: Final = 1_800_000
ID_REQUIRED_VERSION: Final = 4
"""From here on a newcomer comes again with the id it is given."""

Result = TypeVar("Result")


async def _answer(ask: Callable[[Callable[[Result], None]], None]) -> Result:
    """Wait for what `done` is told."""
    told: list[Result] = []
    event = trio.Event()

    def done(result: Result) -> None:
        told.append(result)
        event.set()

    ask(done)
    await event.wait()
    return told[0]


async def on_find_coordinator(session: KafkaSession, asked: Asked) -> FindCoordinatorResponse:
    request = asked.request
    assert isinstance(request, FindCoordinatorRequest)
    options = session.front.options
    return FindCoordinatorResponse(
        node_id=options.node_id,
        host=options.host,
        port=options.port,
        coordinators=[
            FoundCoordinator(
                key=key,
                node_id=options.node_id,
                host=options.host,
                port=options.port,
                error_code=NONE,
                error_message=None,
            )
            for key in request.coordinator_keys
        ],
    )


async def on_join_group(session: KafkaSession, asked: Asked) -> JoinGroupResponse:
    request = asked.request
    assert isinstance(request, JoinGroupRequest)
    if not request.group_id:
        return _joined(Joined(error_code=INVALID_GROUP_ID, member_id=request.member_id))
    if not SESSION_MS_MIN <= request.session_timeout_ms <= SESSION_MS_MAX:
        return _joined(Joined(error_code=INVALID_SESSION_TIMEOUT, member_id=request.member_id))
    rebalance_ms = request.rebalance_timeout_ms
    joining = Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=asked.client_id,
        host=f"/{session.connection.host}",
        session_seconds=request.session_timeout_ms / 1000,
        rebalance_seconds=(rebalance_ms if rebalance_ms > 0 else request.session_timeout_ms) / 1000,
        protocol_type=request.protocol_type,
        protocols=tuple((one.name, one.metadata) for one in request.protocols),
        id_required=asked.version >= ID_REQUIRED_VERSION,
    )
    groups = session.front.groups
    result: Joined = await _answer(
        lambda done: groups.made(request.group_id).join(joining, groups.now(), done)
    )
    return _joined(result)


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


async def on_sync_group(session: KafkaSession, asked: Asked) -> SyncGroupResponse:
    request = asked.request
    assert isinstance(request, SyncGroupRequest)
    groups = session.front.groups
    group = groups.find(request.group_id)
    if group is None:
        return SyncGroupResponse(error_code=UNKNOWN_MEMBER_ID, assignment=b"")
    result: Synced = await _answer(
        lambda done: group.sync(
            request.member_id,
            request.generation_id,
            request.group_instance_id,
            {one.member_id: one.assignment for one in request.assignments},
            groups.now(),
            done,
        )
    )
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol,
        assignment=result.assignment,
    )


async def on_heartbeat(session: KafkaSession, asked: Asked) -> HeartbeatResponse:
    request = asked.request
    assert isinstance(request, HeartbeatRequest)
    groups = session.front.groups
    group = groups.find(request.group_id)
    if group is None:
        return HeartbeatResponse(error_code=UNKNOWN_MEMBER_ID)
    return HeartbeatResponse(
        error_code=group.heartbeat(
            request.member_id, request.generation_id, request.group_instance_id, groups.now()
        )
    )


async def on_leave_group(session: KafkaSession, asked: Asked) -> LeaveGroupResponse:
    request = asked.request
    assert isinstance(request, LeaveGroupRequest)
    leaving = request.members or [LeaveMember(member_id=request.member_id)]
    left = [
        LeftMember(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            error_code=_leave(session, request.group_id, one),
        )
        for one in leaving
    ]
    if request.members:
        return LeaveGroupResponse(error_code=NONE, members=left)
    return LeaveGroupResponse(error_code=left[0].error_code)


def _leave(session: KafkaSession, group_id: str, member: LeaveMember) -> int:
    groups = session.front.groups
    group = groups.find(group_id)
    if group is None:
        return UNKNOWN_MEMBER_ID
    return group.leave(member.member_id, member.group_instance_id, groups.now())


HANDLERS: Final[Mapping[int, Any]] = {
    10: on_find_coordinator,
    11: on_join_group,
    12: on_heartbeat,
    13: on_leave_group,
    14: on_sync_group,
}
