"""The messages of ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Request,
    Response,
    String,
    Uuid,
    since,
)


class TopicIdPartitions(Message):
    """Partitions of one topic, by its id."""

    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupHeartbeatRequest(Request):
    """A heartbeat; epoch 0 joins and -1 leaves. Unchanged fields are null."""

    KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: Annotated[String | None, since(1)] = None
    server_assignor: String | None = None
    topic_partitions: list[TopicIdPartitions] | None = None


class HeartbeatAssignment(Message):
    """The partitions that a member may own now."""

    topic_partitions: list[TopicIdPartitions]


class ConsumerGroupHeartbeatResponse(Response):
    """The member's epoch, and its assignment if that has changed."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: HeartbeatAssignment | None = None


class ConsumerGroupDescribeRequest(Request):
    """Describes consumer groups."""

    KEY = ApiKey.CONSUMER_GROUP_DESCRIBE
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    group_ids: list[String]
    include_authorized_operations: Bool


class DescribedTopicPartitions(Message):
    """Partitions of one topic, by its id and its name."""

    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class DescribedAssignment(Message):
    """The present or the target assignment of a member."""

    topic_partitions: list[DescribedTopicPartitions]


class DescribedConsumer(Message):
    """A member: its subscription, its present and its target assignment."""

    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: Annotated[Int8, since(1)] = -1


class DescribedConsumerGroup(Message):
    """A group and its members."""

    error_code: Int16
    error_message: String | None = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: list[DescribedConsumer]
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeResponse(Response):
    """The requested groups."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedConsumerGroup]
