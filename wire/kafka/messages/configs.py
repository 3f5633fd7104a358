"""Configuration of topics, brokers and groups."""

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
    """A topic, broker or group; no keys means all that it has."""

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
    """One setting, and where it comes from."""

    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool
    synonyms: list[DescribedSynonym]
    config_type: Annotated[Int8, since(3)] = 0
    documentation: Annotated[String | None, since(3)] = None


class DescribedResource(Message):
    """All settings of one of them."""

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
    """All that one of them is to have; what is not named goes back to its default."""

    resource_type: Int8
    resource_name: String
    configs: list[ConfigValue]


class AlterConfigsRequest(Request):
    """Configure these anew."""

    KEY = ApiKey.ALTER_CONFIGS
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    resources: list[AlterResource]
    validate_only: Bool


class AlteredResource(Message):
    """Whether one of them is changed."""

    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Response):
    """Which are changed."""

    throttle_time_ms: Int32 = 0
    responses: list[AlteredResource]


class ChangeConfig(Message):
    """Set (0), remove (1), append to (2) or subtract from (3) one setting."""

    name: String
    config_operation: Int8
    value: String | None


class ChangeResource(Message):
    """Changes to one of them; what is not named stays."""

    resource_type: Int8
    resource_name: String
    configs: list[ChangeConfig]


class IncrementalAlterConfigsRequest(Request):
    """Change these settings."""

    KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    resources: list[ChangeResource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Response):
    """Which are changed."""

    throttle_time_ms: Int32 = 0
    responses: list[AlteredResource]


class ListConfigResourcesRequest(Request):
    """List resources of these kinds, or of all kinds, that can have configs."""

    KEY = ApiKey.LIST_CONFIG_RESOURCES
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    resource_types: Annotated[list[Int8], since(1)] = []


class ListedResource(Message):
    """One of them."""

    resource_name: String
    resource_type: Annotated[Int8, since(1)] = 16


class ListConfigResourcesResponse(Response):
    """The resources."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: list[ListedResource]
