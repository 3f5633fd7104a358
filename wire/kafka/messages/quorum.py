"""The messages of DescribeQuorum (KIP-595, KIP-836)."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    Request,
    Response,
    String,
    UInt16,
    Uuid,
    since,
)


class DescribeQuorumPartition(Message):
    """A partition of the metadata log, which has one."""

    partition_index: Int32


class DescribeQuorumTopic(Message):
    """The metadata log, by its topic name."""

    topic_name: String
    partitions: list[DescribeQuorumPartition]


class DescribeQuorumRequest(Request):
    """Asks for the voters, the leader and the lag of the metadata quorum."""

    KEY = ApiKey.DESCRIBE_QUORUM
    VERSIONS = (0, 2)
    FLEXIBLE = 0

    topics: list[DescribeQuorumTopic]


class QuorumReplica(Message):
    """The log end offset and the fetch times of one replica (KIP-836)."""

    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(2)] = NO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1)] = -1


class QuorumPartition(Message):
    """The replicas of one partition."""

    partition_index: Int32
    error_code: Int16
    error_message: Annotated[String | None, since(2)] = None
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[QuorumReplica]
    observers: list[QuorumReplica]


class QuorumTopic(Message):
    """The partitions of the metadata log."""

    topic_name: String
    partitions: list[QuorumPartition]


class QuorumListener(Message):
    """The address of one node."""

    name: String
    host: String
    port: UInt16


class QuorumNode(Message):
    """A voter of the quorum."""

    node_id: Int32
    listeners: list[QuorumListener]


class DescribeQuorumResponse(Response):
    """The quorums of the requested partitions."""

    error_code: Int16
    error_message: Annotated[String | None, since(2)] = None
    topics: list[QuorumTopic]
    nodes: Annotated[list[QuorumNode], since(2)] = []
