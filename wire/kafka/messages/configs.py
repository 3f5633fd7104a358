"""The messages of DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from enum import IntEnum
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
    since,
)
from magnetar.wire.kafka.messages.parts import ConfigValue


class ConfigResourceType(IntEnum):
    """The types of resources that have configs here (`ConfigResource.Type` of Kafka 4.2)."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class DescribeResource(Message):
    """A resource; null for all its configs."""

    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


class DescribeConfigsRequest(Request):
    """Asks for the configs of resources."""

    KEY = ApiKey.DESCRIBE_CONFIGS
    VERSIONS = (1, 4)
    FLEXIBLE = 4

    resources: list[DescribeResource]
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, since(3)] = False


class DescribedSynonym(Message):
    """A value of the config at one source (KIP-226)."""

    name: String
    value: String | None
    source: Int8


class DescribedConfig(Message):
    """One config and its source."""

    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool
    synonyms: list[DescribedSynonym]
    config_type: Annotated[Int8, since(3)] = 0
    documentation: Annotated[String | None, since(3)] = None


class DescribedResource(Message):
    """The configs of one resource."""

    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    configs: list[DescribedConfig]


class DescribeConfigsResponse(Response):
    """The configs of each resource."""

    throttle_time_ms: Int32 = 0
    results: list[DescribedResource]


class AlterResource(Message):
    """All configs of one resource; others return to their defaults."""

    resource_type: Int8
    resource_name: String
    configs: list[ConfigValue]


class AlterConfigsRequest(Request):
    """Replaces the configs of resources (KIP-133)."""

    KEY = ApiKey.ALTER_CONFIGS
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    resources: list[AlterResource]
    validate_only: Bool


class AlteredResource(Message):
    """The result of one resource."""

    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Response):
    """The result of each resource."""

    throttle_time_ms: Int32 = 0
    responses: list[AlteredResource]


class ChangeConfig(Message):
    """Sets (0), deletes (1), appends to (2) or subtracts from (3) one config."""

    name: String
    config_operation: Int8
    value: String | None


class ChangeResource(Message):
    """Changes to one resource; other configs stay."""

    resource_type: Int8
    resource_name: String
    configs: list[ChangeConfig]


class IncrementalAlterConfigsRequest(Request):
    """Changes some configs of resources (KIP-339)."""

    KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    resources: list[ChangeResource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Response):
    """The result of each resource."""

    throttle_time_ms: Int32 = 0
    responses: list[AlteredResource]


class ListConfigResourcesRequest(Request):
    """Lists resources of these types, or of all types (KIP-1142)."""

    KEY = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    resource_types: Annotated[list[Int8], since(1)] = []


class ListedResource(Message):
    """One resource."""

    resource_name: String
    resource_type: Annotated[Int8, since(1)] = 16


class ListConfigResourcesResponse(Response):
    """The resources."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: list[ListedResource]
