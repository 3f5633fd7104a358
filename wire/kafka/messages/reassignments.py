"""The messages of reassignments, elections of leaders and log directories."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Request,
    Response,
    String,
    since,
)
from magnetar.wire.kafka.messages.parts import PartitionError, TopicIndexes, TopicPartitions


class ReassignedPartition(Message):
    """The replicas that one partition is moved to."""

    partition_index: Int32
    replicas: list[Int32] | None


class ReassignedTopic(Message):
    """The replicas that partitions of one topic are moved to."""

    name: String
    partitions: list[ReassignedPartition]


class AlterPartitionReassignmentsRequest(Request):
    """Reassigns replicas of partitions (KIP-455); null cancels a reassignment."""

    KEY = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    topics: list[ReassignedTopic]


class ReassignmentPartition(Message):
    """The result of one partition."""

    partition_index: Int32
    error_code: Int16
    error_message: String | None = None


class ReassignmentTopic(Message):
    """The results of one topic."""

    name: String
    partitions: list[ReassignmentPartition]


class AlterPartitionReassignmentsResponse(Response):
    """The result of each move."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, since(1)] = True
    error_code: Int16
    error_message: String | None
    responses: list[ReassignmentTopic]


class AlteredDirTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[Int32]


class AlteredDir(Message):
    """Partitions to move into one directory."""

    path: String
    topics: list[AlteredDirTopic]


class AlterReplicaLogDirsRequest(Request):
    """Moves partitions to other log directories (KIP-113)."""

    KEY = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS = (1, 2)
    FLEXIBLE = 2

    dirs: list[AlteredDir]


class AlteredDirResult(Message):
    """The results of one topic."""

    topic_name: String
    partitions: list[PartitionError]


class AlterReplicaLogDirsResponse(Response):
    """The results of all topics."""

    throttle_time_ms: Int32 = 0
    results: list[AlteredDirResult]


class ListPartitionReassignmentsRequest(Request):
    """Lists the reassignments in progress of these partitions; null for all."""

    KEY = ApiKey.LIST_PARTITION_REASSIGNMENTS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    timeout_ms: Int32 = 60000
    topics: list[TopicIndexes] | None = None


class MovedPartition(Message):
    """The replicas of a partition in reassignment (KIP-455)."""

    partition_index: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]


class MovedTopic(Message):
    """Partitions of one topic in reassignment."""

    name: String
    partitions: list[MovedPartition]


class ListPartitionReassignmentsResponse(Response):
    """The reassignments in progress."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    topics: list[MovedTopic]


class ElectLeadersRequest(Request):
    """Elects the preferred leaders of partitions (KIP-460); null for all partitions."""

    KEY = ApiKey.ELECT_LEADERS
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


class ElectedPartition(Message):
    """The result of one partition."""

    partition_id: Int32
    error_code: Int16
    error_message: String | None


class ElectedTopic(Message):
    """The results of one topic."""

    topic: String
    partition_result: list[ElectedPartition]


class ElectLeadersResponse(Response):
    """The result of each election."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ElectedTopic]


class DescribeLogDirsRequest(Request):
    """Asks for the sizes of partitions (KIP-113); null means all."""

    KEY = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS = (1, 4)
    FLEXIBLE = 2

    topics: list[TopicPartitions] | None


class DescribedLogDirPartition(Message):
    """The size of one partition."""

    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribedLogDirTopic(Message):
    """The partitions of one topic in a directory."""

    name: String
    partitions: list[DescribedLogDirPartition]


class DescribedLogDir(Message):
    """A log directory, its partitions, and its disk (KIP-827)."""

    error_code: Int16
    log_dir: String
    topics: list[DescribedLogDirTopic]
    total_bytes: Annotated[Int64, since(4)] = -1
    usable_bytes: Annotated[Int64, since(4)] = -1


class DescribeLogDirsResponse(Response):
    """The directories of this broker."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    results: list[DescribedLogDir]
