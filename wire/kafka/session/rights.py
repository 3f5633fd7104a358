"""The rights that each request needs, and what remains of a request for a client that has some.

Actions and resources are those of Kafka's ACLs (KIP-11; `KafkaApis.scala` and
`ControllerApis.scala` of 4.3 have the checks of each request). A request has two kinds of rights:

    of the whole    without one of them every part of the request is refused
    of its items    an item of its list (a topic, a group, a config resource) that is not allowed is
                    taken out, and answered with an error code; the others are served

`refusals.py` has the answers, `splitting.py` does it. Handlers of requests that list everything
leave out what the client may not describe.

Topics have the client's names. Those named by ids alone (KIP-516) are looked up before.

Invariant: every served request is in `RIGHTS`, in `OWN` or in `HELLO`; one of `RIGHTS` is split
once, before its handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from magnetar.wire.kafka.messages.configs import ConfigResourceType

CODES: Final[Mapping[ResourceType, int]] = {
    ResourceType.TOPIC: TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTION: TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error code of a resource of each kind that a client may not use."""


class Need(NamedTuple):
    """One right that a request needs."""

    action: Action
    kind: ResourceType
    name: str


ItemRight = Callable[[Any, str], Need]
"""The right that an item needs, by the item and its name if it is a topic."""


class Rights(NamedTuple):
    """The rights of one kind of request."""

    whole: Callable[[Any], Iterable[Need]] = lambda _request: ()
    items: tuple[str, ...] = ()
    """The lists of the request whose items need a right each."""
    item: ItemRight | None = None
    instead: Need | None = None
    """A right of the cluster that stands for those of all items; without items, for the whole."""
    together: bool = False
    """If an item is refused, none is served (OPERATION_NOT_ATTEMPTED)."""


def _cluster(action: Action) -> Callable[[Any], Iterable[Need]]:
    return lambda _request: (Need(action, ResourceType.CLUSTER, CLUSTER_NAME),)


def _group(action: Action) -> Callable[[Any], Iterable[Need]]:
    return lambda request: (Need(action, ResourceType.GROUP, request.group_id),)


def _transaction(request: Any) -> Iterable[Need]:
    if request.transactional_id is None:
        return ()
    return (Need(Action.WRITE, ResourceType.TRANSACTION, request.transactional_id),)


def _transaction_and_group(request: Any) -> Iterable[Need]:
    return (*_transaction(request), *_group(Action.READ)(request))


def _subscription(request: Any) -> Iterable[Need]:
    """A member of the newer protocol has to be able to see what it subscribes to."""
    yield from _group(Action.READ)(request)
    for name in request.subscribed_topic_names or ():
        yield Need(Action.DESCRIBE, ResourceType.TOPIC, name)


def _topics(action: Action) -> ItemRight:
    return lambda _item, name: Need(action, ResourceType.TOPIC, name)


def _named(action: Action, kind: ResourceType) -> ItemRight:
    """Items that are plain names."""
    return lambda item, _name: Need(action, kind, item)


def _configs(action: Action) -> ItemRight:
    """Configs of topics and groups are their own, all others the cluster's."""

    def need(item: Any, _name: str) -> Need:
        if item.resource_type == ConfigResourceType.TOPIC:
            return Need(action, ResourceType.TOPIC, item.resource_name)
        if item.resource_type == ConfigResourceType.GROUP:
            return Need(action, ResourceType.GROUP, item.resource_name)
        return Need(action, ResourceType.CLUSTER, CLUSTER_NAME)

    return need


def _on_cluster(action: Action) -> Need:
    return Need(action, ResourceType.CLUSTER, CLUSTER_NAME)


_MEMBER: Final = Rights(whole=_group(Action.READ))
_OF_TRANSACTION: Final = Rights(whole=_transaction)
_DESCRIBES_CLUSTER: Final = Rights(whole=_cluster(Action.DESCRIBE))
_ALTERS_CLUSTER: Final = Rights(whole=_cluster(Action.ALTER))
_ALTERS_CONFIGS: Final = Rights(items=("resources",), item=_configs(Action.ALTER_CONFIGS))
_DESCRIBE, _READ, _WRITE, _DELETE = Action.DESCRIBE, Action.READ, Action.WRITE, Action.DELETE

OWN: Final[Mapping[int, str]] = {
    ApiKey.PRODUCE: "write topic; write transactional id",
    ApiKey.METADATA: "describe topic, to create one create topic or create cluster",
    ApiKey.OFFSET_FETCH: "describe group, describe topic",
    ApiKey.FIND_COORDINATOR: "describe group, or describe transactional id",
    ApiKey.LIST_GROUPS: "describe cluster, or describe group of those that are listed",
    ApiKey.INIT_PRODUCER_ID: "write transactional id; idempotent write cluster, or write any topic",
    ApiKey.DESCRIBE_CLUSTER: "",
    ApiKey.LIST_TRANSACTIONS: "describe transactional id of those that are listed",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe topic",
}
"""Requests whose handlers ask for the rights as they go (`Caller.may`), and which."""

RIGHTS: Final[Mapping[int, Rights]] = {
    ApiKey.FETCH: Rights(items=("topics",), item=_topics(_READ)),
    ApiKey.LIST_OFFSETS: Rights(items=("topics",), item=_topics(_DESCRIBE)),
    ApiKey.OFFSET_COMMIT: Rights(_group(_READ), ("topics",), _topics(_READ)),
    ApiKey.JOIN_GROUP: _MEMBER,
    ApiKey.HEARTBEAT: _MEMBER,
    ApiKey.LEAVE_GROUP: _MEMBER,
    ApiKey.SYNC_GROUP: _MEMBER,
    ApiKey.DESCRIBE_GROUPS: Rights(items=("groups",), item=_named(_DESCRIBE, ResourceType.GROUP)),
    ApiKey.CREATE_TOPICS: Rights(
        items=("topics",), item=_topics(Action.CREATE), instead=_on_cluster(Action.CREATE)
    ),
    ApiKey.DELETE_TOPICS: Rights(
        items=("topics", "topic_names"), item=_topics(_DELETE), instead=_on_cluster(_DELETE)
    ),
    ApiKey.DELETE_RECORDS: Rights(items=("topics",), item=_topics(_DELETE)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Rights(
        items=("topics",), item=_topics(_DESCRIBE), instead=_on_cluster(Action.CLUSTER_ACTION)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Rights(_transaction, ("topics",), _topics(_WRITE), together=True),
    ApiKey.ADD_OFFSETS_TO_TXN: Rights(whole=_transaction_and_group),
    ApiKey.END_TXN: _OF_TRANSACTION,
    ApiKey.WRITE_TXN_MARKERS: Rights(
        whole=_cluster(Action.ALTER), instead=_on_cluster(Action.CLUSTER_ACTION)
    ),
    ApiKey.TXN_OFFSET_COMMIT: Rights(_transaction_and_group, ("topics",), _topics(_READ)),
    ApiKey.DESCRIBE_ACLS: _DESCRIBES_CLUSTER,
    ApiKey.CREATE_ACLS: _ALTERS_CLUSTER,
    ApiKey.DELETE_ACLS: _ALTERS_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS: Rights(items=("resources",), item=_configs(Action.DESCRIBE_CONFIGS)),
    ApiKey.ALTER_CONFIGS: _ALTERS_CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTERS_CLUSTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBES_CLUSTER,
    ApiKey.CREATE_PARTITIONS: Rights(items=("topics",), item=_topics(Action.ALTER)),
    ApiKey.DELETE_GROUPS: Rights(items=("groups_names",), item=_named(_DELETE, ResourceType.GROUP)),
    ApiKey.ELECT_LEADERS: _ALTERS_CLUSTER,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _ALTERS_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTERS_CLUSTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBES_CLUSTER,
    ApiKey.OFFSET_DELETE: Rights(_group(_DELETE), ("topics",), _topics(_READ)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Rights(whole=_cluster(Action.DESCRIBE_CONFIGS)),
    ApiKey.ALTER_CLIENT_QUOTAS: Rights(whole=_cluster(Action.ALTER_CONFIGS)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBES_CLUSTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTERS_CLUSTER,
    ApiKey.DESCRIBE_QUORUM: _DESCRIBES_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS: Rights(items=("topics",), item=_topics(_READ)),
    ApiKey.DESCRIBE_TRANSACTIONS: Rights(
        items=("transactional_ids",), item=_named(_DESCRIBE, ResourceType.TRANSACTION)
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Rights(whole=_subscription),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Rights(
        items=("group_ids",), item=_named(_DESCRIBE, ResourceType.GROUP)
    ),
    ApiKey.LIST_CONFIG_RESOURCES: Rights(whole=_cluster(Action.DESCRIBE_CONFIGS)),
}
"""By API key."""
