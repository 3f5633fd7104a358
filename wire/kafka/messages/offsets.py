"""The messages of OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Bool,
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
    until,
)
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors


class CommitPartition(Message):
    """The offset of one partition, and the client's metadata."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: String | None


class CommitTopic(Message):
    """Partitions of one topic; from version 10 on by id."""

    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    partitions: list[CommitPartition]


class OffsetCommitRequest(Request):
    """Commits offsets of a group."""

    KEY = ApiKey.OFFSET_COMMIT
    VERSIONS = (2, 10)
    FLEXIBLE = 8

    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, until(4)] = -1
    topics: list[CommitTopic]


class CommittedTopic(Message):
    """The results of one topic."""

    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    partitions: list[PartitionError]


class OffsetCommitResponse(Response):
    """The result of each partition."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: list[CommittedTopic]


class FetchOffsetsTopic(Message):
    """Partitions of one topic; from version 10 on by id."""

    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    partition_indexes: list[Int32]


class FetchOffsetsGroup(Message):
    """A group, and its topics; null for all topics."""

    group_id: String
    member_id: Annotated[String | None, since(9)] = None
    member_epoch: Annotated[Int32, since(9)] = -1
    topics: list[FetchOffsetsTopic] | None


class OffsetFetchRequest(Request):
    """Asks for committed offsets of a group, from version 8 on of several (KIP-709)."""

    KEY = ApiKey.OFFSET_FETCH
    VERSIONS = (1, 10)
    FLEXIBLE = 6

    group_id: Annotated[String, until(7)] = ""
    topics: Annotated[list[FetchOffsetsTopic] | None, until(7), nullable(2)] = []
    groups: Annotated[list[FetchOffsetsGroup], since(8)] = []
    require_stable: Annotated[Bool, since(7)] = False


class FetchedOffsetsPartition(Message):
    """The committed offset of one partition; -1 if there is none."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(5)] = -1
    metadata: String | None
    error_code: Int16


class FetchedOffsetsTopic(Message):
    """The committed offsets of one topic."""

    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = NO_UUID
    partitions: list[FetchedOffsetsPartition]


class FetchedOffsetsGroup(Message):
    """The committed offsets of one group."""

    group_id: String
    topics: list[FetchedOffsetsTopic]
    error_code: Int16


class OffsetFetchResponse(Response):
    """The committed offsets, from version 8 on of each group."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: Annotated[list[FetchedOffsetsTopic], until(7)] = []
    error_code: Annotated[Int16, since(2), until(7)] = 0
    groups: Annotated[list[FetchedOffsetsGroup], since(8)] = []


class DeleteOffsetsPartition(Message):
    """A partition."""

    partition_index: Int32


class DeleteOffsetsTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[DeleteOffsetsPartition]


class OffsetDeleteRequest(Request):
    """Deletes committed offsets of a group (KIP-496)."""

    KEY = ApiKey.OFFSET_DELETE
    VERSIONS = (0, 0)

    group_id: String
    topics: list[DeleteOffsetsTopic]


class OffsetDeleteResponse(Response):
    """The result of each partition."""

    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: list[TopicErrors]
