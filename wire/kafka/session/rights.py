"""The rights that each request needs, checked before it starts.

Operations and resources are those of Kafka's ACLs (KIP-11; `KafkaApis.scala` of 4.3 has the checks
of each request). Names are the client's; a topic that is named by its id alone (KIP-516) appears as
the id in hex. A forbidden request ends its connection; error codes for single topics come with the
first refusal.

Invariant: every served request has a row here, and is checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import NO_UUID, Request
from magnetar.wire.kafka.messages.configs import ConfigResourceType


class Right(NamedTuple):
    """The action of one kind of request, and the resources that a request names."""

    action: Action
    kind: ResourceType
    names: Callable[[Any], Iterable[str]]


def check(access: Access, who: Identity, key: int, request: Request | None) -> None:
    """Return if the request is allowed, else raise `Unauthorized`."""
    if key not in RIGHTS or request is None:  # `HELLO`: allowed before authentication
        return
    for right in (RIGHTS[key], *OTHERS.get(key, ())):
        for name in right.names(request):
            access.check(who, right.action, right.kind, name)


def check_named(access: Access, who: Identity, key: int, name: str) -> None:
    """Check a request that names one resource."""
    right = RIGHTS[key]
    access.check(who, right.action, right.kind, name)


def _cluster(_request: Any) -> Iterable[str]:
    return ("cluster",)


def _topics(*fields: str) -> Callable[[Any], Iterator[str]]:
    """The topics in a list, by name or by id."""

    def names(request: Any) -> Iterator[str]:
        for field in fields:
            for topic in getattr(request, field) or ():
                yield topic if isinstance(topic, str) else _name_of(topic)

    return names


def _name_of(topic: Any) -> str:
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if name:
        return str(name)
    known = getattr(topic, "topic_id", NO_UUID)
    return known.hex() if known != NO_UUID else ""


def _one(field: str) -> Callable[[Any], Iterable[str]]:
    """One name; a request without it touches no such resource."""

    def names(request: Any) -> Iterable[str]:
        name = getattr(request, field)
        return (name,) if name else ()

    return names


def _groups(request: Any) -> Iterator[str]:
    """One group, or several."""
    if request.group_id:
        yield request.group_id
    for group in request.groups:
        yield group.group_id


def _resources(*, of_groups: bool) -> Callable[[Any], Iterator[str]]:
    """The configured resources: groups, or all others."""

    def names(request: Any) -> Iterator[str]:
        for resource in request.resources:
            if (resource.resource_type == ConfigResourceType.GROUP) is of_groups:
                yield resource.resource_name

    return names


_READ, _WRITE, _DESCRIBE = Action.READ, Action.WRITE, Action.DESCRIBE
_CREATE, _DELETE, _ALTER = Action.CREATE, Action.DELETE, Action.ALTER
_TOPIC, _GROUP, _TRANSACTION, _CLUSTER = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTION,
    ResourceType.CLUSTER,
)
_MEMBER: Final = Right(_READ, _GROUP, _one("group_id"))
_IN_TRANSACTION: Final = Right(_WRITE, _TRANSACTION, _one("transactional_id"))

HELLO: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE))
"""Requests that need no right. Kafka accepts no others before authentication
(`SaslServerAuthenticator.handleKafkaRequest` of 4.3).
"""

RIGHTS: Final[Mapping[int, Right]] = {
    ApiKey.PRODUCE: Right(_WRITE, _TOPIC, _topics("topic_data")),
    ApiKey.FETCH: Right(_READ, _TOPIC, _topics("topics")),
    ApiKey.LIST_OFFSETS: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    ApiKey.METADATA: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    ApiKey.OFFSET_COMMIT: _MEMBER,
    ApiKey.OFFSET_FETCH: Right(_DESCRIBE, _GROUP, _groups),
    ApiKey.FIND_COORDINATOR: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.JOIN_GROUP: _MEMBER,
    ApiKey.HEARTBEAT: _MEMBER,
    ApiKey.LEAVE_GROUP: _MEMBER,
    ApiKey.SYNC_GROUP: _MEMBER,
    ApiKey.DESCRIBE_GROUPS: Right(_DESCRIBE, _GROUP, _topics("groups")),
    ApiKey.LIST_GROUPS: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.CREATE_TOPICS: Right(_CREATE, _TOPIC, _topics("topics")),
    ApiKey.DELETE_TOPICS: Right(_DELETE, _TOPIC, _topics("topics", "topic_names")),
    ApiKey.DELETE_RECORDS: Right(_DELETE, _TOPIC, _topics("topics")),
    ApiKey.INIT_PRODUCER_ID: _IN_TRANSACTION,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    ApiKey.ADD_PARTITIONS_TO_TXN: _IN_TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: _IN_TRANSACTION,
    ApiKey.END_TXN: _IN_TRANSACTION,
    ApiKey.WRITE_TXN_MARKERS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.TXN_OFFSET_COMMIT: _IN_TRANSACTION,
    ApiKey.DESCRIBE_ACLS: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.CREATE_ACLS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.DELETE_ACLS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.DESCRIBE_CONFIGS: Right(_DESCRIBE, _TOPIC, _resources(of_groups=False)),
    ApiKey.ALTER_CONFIGS: Right(_ALTER, _TOPIC, _resources(of_groups=False)),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.DESCRIBE_LOG_DIRS: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.CREATE_PARTITIONS: Right(_ALTER, _TOPIC, _topics("topics")),
    ApiKey.DELETE_GROUPS: Right(_DELETE, _GROUP, _topics("groups_names")),
    ApiKey.ELECT_LEADERS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Right(_ALTER, _TOPIC, _resources(of_groups=False)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Right(_ALTER, _CLUSTER, _cluster),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.OFFSET_DELETE: Right(_DELETE, _GROUP, _one("group_id")),
    ApiKey.DESCRIBE_QUORUM: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.DESCRIBE_CLUSTER: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.DESCRIBE_PRODUCERS: Right(_READ, _TOPIC, _topics("topics")),
    ApiKey.DESCRIBE_TRANSACTIONS: Right(_DESCRIBE, _TRANSACTION, _topics("transactional_ids")),
    ApiKey.LIST_TRANSACTIONS: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _MEMBER,
    ApiKey.CONSUMER_GROUP_DESCRIBE: Right(_DESCRIBE, _GROUP, _topics("group_ids")),
    ApiKey.LIST_CONFIG_RESOURCES: Right(_DESCRIBE, _CLUSTER, _cluster),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Right(_DESCRIBE, _TOPIC, _topics("topics")),
}
"""By API key."""

OTHERS: Final[Mapping[int, tuple[Right, ...]]] = {
    ApiKey.DESCRIBE_CONFIGS: (Right(_DESCRIBE, _GROUP, _resources(of_groups=True)),),
    ApiKey.ALTER_CONFIGS: (Right(_ALTER, _GROUP, _resources(of_groups=True)),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Right(_ALTER, _GROUP, _resources(of_groups=True)),),
}
"""Further rights of requests that name resources of several kinds (groups since KIP-848)."""
