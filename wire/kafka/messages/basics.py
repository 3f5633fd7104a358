"""ApiVersions, Metadata, FindCoordinator, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Request,
    Response,
    String,
    Uuid,
    nullable,
    since,
    tagged,
    until,
)


class ApiVersionsRequest(Request):
    """Asks for the APIs and versions of the broker (KIP-35)."""

    KEY = ApiKey.API_VERSIONS
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    client_software_name: Annotated[String, since(3)] = ""
    client_software_version: Annotated[String, since(3)] = ""


class SupportedApi(Message):
    """A supported API, with its first and last version."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeature(Message):
    """A supported feature and its levels (KIP-584)."""

    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeature(Message):
    """A finalized feature of the cluster and its levels (KIP-584)."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Response):
    """The APIs and versions. Its header always has version 0: none is agreed yet (KIP-511)."""

    error_code: Int16
    api_keys: list[SupportedApi]
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeature], since(3), tagged(0)] = []
    finalized_features_epoch: Annotated[Int64, since(3), tagged(1)] = -1
    finalized_features: Annotated[list[FinalizedFeature], since(3), tagged(2)] = []
    zk_migration_ready: Annotated[Bool, since(3), tagged(3)] = False


class MetadataRequestTopic(Message):
    """A topic by name, or without a name by id."""

    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    name: Annotated[String | None, nullable(10)]


class MetadataRequest(Request):
    """Asks for topics and their leaders. Null means all topics; in version 0 an empty list does."""

    KEY = ApiKey.METADATA
    VERSIONS = (0, 13)
    FLEXIBLE = 9

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(1)]
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


class MetadataBroker(Message):
    """The address of one broker."""

    node_id: Int32
    host: String
    port: Int32
    rack: Annotated[String | None, since(1)] = None


class MetadataPartition(Message):
    """The leader and the replicas of a partition."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7)] = -1
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: Annotated[list[Int32], since(5)] = []


class MetadataTopic(Message):
    """A topic with its partitions, or its error."""

    error_code: Int16
    name: Annotated[String | None, nullable(12)]
    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    is_internal: Annotated[Bool, since(1)] = False
    partitions: list[MetadataPartition]
    topic_authorized_operations: Annotated[Int32, since(8)] = -2147483648


class MetadataResponse(Response):
    """The brokers, and the requested topics."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: list[MetadataBroker]
    cluster_id: Annotated[String | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: list[MetadataTopic]
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = -2147483648
    error_code: Annotated[Int16, since(13)] = 0


class FindCoordinatorRequest(Request):
    """Asks for the coordinator of a key, from version 4 on of several (KIP-699)."""

    KEY = ApiKey.FIND_COORDINATOR
    VERSIONS = (0, 6)
    FLEXIBLE = 3

    key: Annotated[String, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[list[String], since(4)] = []


class CoordinatorNode(Message):
    """The coordinator of one key."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None = None


class FindCoordinatorResponse(Response):
    """The coordinator, from version 4 on one for each key."""

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[String | None, since(1), until(3)] = None
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[String, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[CoordinatorNode], since(4)] = []


class DescribeClusterRequest(Request):
    """Asks for the brokers of the cluster (KIP-700)."""

    KEY = ApiKey.DESCRIBE_CLUSTER
    VERSIONS = (0, 2)
    FLEXIBLE = 0

    include_cluster_authorized_operations: Bool
    endpoint_type: Annotated[Int8, since(1)] = 1
    include_fenced_brokers: Annotated[Bool, since(2)] = False


class DescribedBroker(Message):
    """The address of one broker."""

    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Annotated[Bool, since(2)] = False


class DescribeClusterResponse(Response):
    """The cluster and its brokers."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: String
    controller_id: Int32 = -1
    brokers: list[DescribedBroker]
    cluster_authorized_operations: Int32 = -2147483648


class DescribeTopic(Message):
    """A topic to describe."""

    name: String


class TopicCursor(Message):
    """The topic and partition to continue with (KIP-966)."""

    topic_name: String
    partition_index: Int32


class DescribeTopicPartitionsRequest(Request):
    """Describes topics, with a limit of partitions in one response (KIP-966)."""

    KEY = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topics: list[DescribeTopic]
    response_partition_limit: Int32 = 2000
    cursor: TopicCursor | None = None


class DescribedPartition(Message):
    """The leader and the replicas of a partition."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32]


class DescribedTopic(Message):
    """A topic with its partitions, or its error."""

    error_code: Int16
    name: String | None
    topic_id: Uuid
    is_internal: Bool = False
    partitions: list[DescribedPartition]
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponse(Response):
    """The topics, and the cursor to continue with."""

    throttle_time_ms: Int32 = 0
    topics: list[DescribedTopic]
    next_cursor: TopicCursor | None = None
