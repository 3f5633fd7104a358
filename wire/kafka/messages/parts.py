"""Structures that several messages share."""

from __future__ import annotations

from magnetar.wire.kafka.codec.declare import Int16, Int32, Message, String


class LeaderIdAndEpoch(Message):
    """The current leader of a partition, for clients that used another broker (KIP-951)."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Message):
    """The address of a current leader (KIP-951)."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


class TopicPartitions(Message):
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


class TopicIndexes(Message):
    """As `TopicPartitions`, with other field names."""

    name: String
    partition_indexes: list[Int32]


class PartitionError(Message):
    """The error code of one partition."""

    partition_index: Int32
    error_code: Int16


class TopicErrors(Message):
    """The error codes of one topic's partitions."""

    name: String
    partitions: list[PartitionError]


class ConfigValue(Message):
    """The new value of one config; null for its default."""

    name: String
    value: String | None
