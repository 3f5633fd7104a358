"""The messages of the classic group protocol, and of tools for groups."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    Request,
    Response,
    String,
    nullable,
    since,
    until,
)


class JoinProtocol(Message):
    """A protocol (assignor) that the member supports, with its metadata."""

    name: String
    metadata: Bytes


class JoinGroupRequest(Request):
    """Joins a group; answered when all members have joined."""

    KEY = ApiKey.JOIN_GROUP
    VERSIONS = (0, 9)
    FLEXIBLE = 6

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, since(1)] = -1
    member_id: String
    group_instance_id: Annotated[String | None, since(5)] = None
    protocol_type: String
    protocols: list[JoinProtocol]
    reason: Annotated[String | None, since(8)] = None


class JoinedMember(Message):
    """A member, for the leader."""

    member_id: String
    group_instance_id: Annotated[String | None, since(5)] = None
    metadata: Bytes


class JoinGroupResponse(Response):
    """The new generation; the leader gets all members."""

    throttle_time_ms: Annotated[Int32, since(2)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, since(7)] = None
    protocol_name: Annotated[String | None, nullable(7)]
    leader: String
    skip_assignment: Annotated[Bool, since(9)] = False
    member_id: String
    members: list[JoinedMember]


class SyncAssignment(Message):
    """The assignment of one member, from the leader."""

    member_id: String
    assignment: Bytes


class SyncGroupRequest(Request):
    """Asks for the member's assignment. The leader's request has the assignments of all members."""

    KEY = ApiKey.SYNC_GROUP
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignments: list[SyncAssignment]


class SyncGroupResponse(Response):
    """The assignment of the member."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignment: Bytes


class HeartbeatRequest(Request):
    """A heartbeat of a member."""

    KEY = ApiKey.HEARTBEAT
    VERSIONS = (0, 4)
    FLEXIBLE = 4

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[String | None, since(3)] = None


class HeartbeatResponse(Response):
    """Whether the generation is current."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16


class LeaveMember(Message):
    """A member that leaves, or that a tool removes."""

    member_id: String
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5)] = None


class LeaveGroupRequest(Request):
    """Members that leave the group; before version 3 only the sender (KIP-345)."""

    KEY = ApiKey.LEAVE_GROUP
    VERSIONS = (0, 5)
    FLEXIBLE = 4

    group_id: String
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[list[LeaveMember], since(3)] = []


class LeftMember(Message):
    """The result of one member."""

    member_id: String
    group_instance_id: String | None = None
    error_code: Int16


class LeaveGroupResponse(Response):
    """The result of each member."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16
    members: Annotated[list[LeftMember], since(3)] = []


class DescribeGroupsRequest(Request):
    """Describes groups."""

    KEY = ApiKey.DESCRIBE_GROUPS
    VERSIONS = (0, 6)
    FLEXIBLE = 5

    groups: list[String]
    include_authorized_operations: Annotated[Bool, since(3)] = False


class DescribedMember(Message):
    """A member with its metadata and its assignment."""

    member_id: String
    group_instance_id: Annotated[String | None, since(4)] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Message):
    """A group and its members."""

    error_code: Int16
    error_message: Annotated[String | None, since(6)] = None
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribedMember]
    authorized_operations: Annotated[Int32, since(3)] = -2147483648


class DescribeGroupsResponse(Response):
    """The requested groups."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    groups: list[DescribedGroup]


class ListGroupsRequest(Request):
    """Lists the groups in these states and of these types (KIP-518, KIP-848)."""

    KEY = ApiKey.LIST_GROUPS
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    states_filter: Annotated[list[String], since(4)] = []
    types_filter: Annotated[list[String], since(5)] = []


class ListedGroup(Message):
    """A group."""

    group_id: String
    protocol_type: String
    group_state: Annotated[String, since(4)] = ""
    group_type: Annotated[String, since(5)] = ""


class ListGroupsResponse(Response):
    """The groups that this broker coordinates."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16
    groups: list[ListedGroup]


class DeleteGroupsRequest(Request):
    """Deletes groups and their committed offsets (KIP-229)."""

    KEY = ApiKey.DELETE_GROUPS
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    groups_names: list[String]


class DeletedGroup(Message):
    """The result of one group."""

    group_id: String
    error_code: Int16


class DeleteGroupsResponse(Response):
    """The result of each group."""

    throttle_time_ms: Int32 = 0
    results: list[DeletedGroup]
