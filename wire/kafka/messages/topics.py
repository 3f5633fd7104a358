"""The messages of CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
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
from magnetar.wire.kafka.messages.parts import ConfigValue


class CreateAssignment(Message):
    """The replicas of one partition."""

    partition_index: Int32
    broker_ids: list[Int32]


class CreateTopic(Message):
    """A topic to create; -1 partitions or replicas for the broker's defaults (KIP-464)."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreateAssignment]
    configs: list[ConfigValue]


class CreateTopicsRequest(Request):
    """Creates topics, or with `validate_only` checks the request."""

    KEY = ApiKey.CREATE_TOPICS
    VERSIONS = (2, 7)
    FLEXIBLE = 5

    topics: list[CreateTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatedConfig(Message):
    """A config of the new topic (KIP-525)."""

    name: String
    value: String | None = None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatedTopic(Message):
    """The result of one creation."""

    name: String
    topic_id: Annotated[Uuid, since(7)] = NO_UUID
    error_code: Int16
    error_message: String | None
    topic_config_error_code: Annotated[Int16, since(5), tagged(0)] = 0
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[list[CreatedConfig] | None, since(5)] = []


class CreateTopicsResponse(Response):
    """The result of each creation."""

    throttle_time_ms: Int32 = 0
    topics: list[CreatedTopic]


class DeleteTopic(Message):
    """A topic to delete, by name, or without a name by id."""

    name: String | None = None
    topic_id: Uuid


class DeleteTopicsRequest(Request):
    """Deletes topics; before version 6 they are plain names."""

    KEY = ApiKey.DELETE_TOPICS
    VERSIONS = (1, 6)
    FLEXIBLE = 4

    topics: Annotated[list[DeleteTopic], since(6)] = []
    topic_names: Annotated[list[String], until(5)] = []
    timeout_ms: Int32


class DeletedTopic(Message):
    """The result of one topic."""

    name: Annotated[String | None, nullable(6)]
    topic_id: Annotated[Uuid, since(6)] = NO_UUID
    error_code: Int16
    error_message: Annotated[String | None, since(5)] = None


class DeleteTopicsResponse(Response):
    """The result of each deletion."""

    throttle_time_ms: Int32 = 0
    responses: list[DeletedTopic]


class CreatePartitionsAssignment(Message):
    """The replicas of one new partition."""

    broker_ids: list[Int32]


class CreatePartitionsTopic(Message):
    """The new number of partitions of a topic."""

    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


class CreatePartitionsRequest(Request):
    """Raises the number of partitions of topics (KIP-195)."""

    KEY = ApiKey.CREATE_PARTITIONS
    VERSIONS = (0, 3)
    FLEXIBLE = 2

    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


class CreatedPartitionsTopic(Message):
    """The result of one topic."""

    name: String
    error_code: Int16
    error_message: String | None = None


class CreatePartitionsResponse(Response):
    """The result of each topic."""

    throttle_time_ms: Int32 = 0
    results: list[CreatedPartitionsTopic]
