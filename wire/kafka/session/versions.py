"""ApiVersions: the API keys and versions that this server has.

It is the first request of a connection, and allowed before authentication (KIP-35).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import INVALID_REQUEST, NONE, UNSUPPORTED_VERSION
from magnetar.wire.kafka.messages.basics import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedApi,
)
from magnetar.wire.kafka.session.context import Handler, RequestContext

NAMED_VERSION: Final = 3
"""From this version on a client sends its name and version (KIP-511)."""
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", re.ASCII)
"""As `ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN` of Kafka 4.3."""

SERVED: Final[Mapping[int, tuple[int, int]]] = {
    # 0 to 2 are refused, but listed: older librdkafka looks for 0, and compresses nothing where
    # that is missing (KAFKA-18659, librdkafka#4956)
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 10),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    # Kafka 4.0.0 dropped 0 and 1, and 4.0.1 brought them back: clients ask for them (KAFKA-19444)
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 4),
    ApiKey.WRITE_TXN_MARKERS: (1, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 4),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 4),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 1),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
}
"""The lowest and the highest version of each API; every one has a handler.

A client falls back only if a key is absent, for example from DescribeCluster to Metadata. The keys
of telemetry (KIP-714) are left out: clients push only to a broker that advertises them.
"""


async def on_api_versions(
    context: RequestContext, request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    # no finalized features: with transaction.version 2 clients of 4.x would leave out
    # AddPartitionsToTxn (KIP-890, part 2)
    return ApiVersionsResponse(
        error_code=_refusal(context.version, request),
        api_keys=[
            SupportedApi(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in SERVED.items()
        ],
    )


def _refusal(version: int, request: ApiVersionsRequest | None) -> int:
    """The error code. An unknown version gets the list of versions as well, encoded as in
    version 0: the client repeats its request on the same connection (KIP-511).
    """
    if request is None:
        return UNSUPPORTED_VERSION
    names = (request.client_software_name, request.client_software_version)
    valid = version < NAMED_VERSION or all(_NAME.fullmatch(name) for name in names)
    return NONE if valid else INVALID_REQUEST


HANDLERS: Final[Mapping[int, Handler]] = {ApiKey.API_VERSIONS: on_api_versions}
