"""Parts that several messages have in common."""

from __future__ import annotations

from magnetar.wire.kafka.codec.declare import Int16, Int32, Message, String


class LeaderIdAndEpoch(Message):
    """The present leader of a partition, for clients that sent to another broker (KIP-951)."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Message):
    """The address of such a leader (KIP-951)."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None


class TopicPartitions(Message):
    """Partitions of one topic."""

    topic: String
    partitions: list[Int32]


class TopicIndexes(Message):
    """The same by other words."""

    name: String
    partition_indexes: list[Int32]


class PartitionError(Message):
    """Whether it was done for one partition."""

    partition_index: Int32
    error_code: Int16


class TopicErrors(Message):
    """Whether it was done for partitions of one topic."""

    name: String
    partitions: list[PartitionError]


class ConfigValue(Message):
    """The new value of one config; null for its default."""

    name: String
    value: String | None
