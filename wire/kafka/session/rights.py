"""What each request wants to do, and to what: asked of core before anything is done.

Names are those that clients use; a topic that is named by its id only stands as the id in hex. So
far everybody may do everything (`core/broker/access.py`). A request that may not be made ends its
connection; answers for single topics come with the day when something is refused.

Invariant: every request that is served has its row here, and is asked about once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from magnetar.core.broker.access import Access, Action, ResourceType
from magnetar.wire.kafka.codec.declare import NO_UUID, Request


class Right(NamedTuple):
    """A kind of request: what it wants to do, and the names of what it does that to."""

    action: Action
    kind: ResourceType
    names: Callable[[Any], Iterable[str]]


def check(access: Access, who: str, key: int, request: Request | None) -> None:
    """Whether somebody may ask that; raises `Unauthorized`."""
    if key not in RIGHTS or request is None:  # what everybody may ask who only says hello
        return
    for right in (RIGHTS[key], *OTHERS.get(key, ())):
        for name in right.names(request):
            access.check(who, right.action, right.kind, name)


def check_named(access: Access, who: str, key: int, name: str) -> None:
    """Likewise, of a request that is about one thing whose name is known."""
    right = RIGHTS[key]
    access.check(who, right.action, right.kind, name)


def _cluster(_request: Any) -> Iterable[str]:
    return ("cluster",)


def _topics(*fields: str) -> Callable[[Any], Iterator[str]]:
    """The topics in a list, by whatever each is named."""

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
    """One name; where there is none, nothing is done to anything."""

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
    """What is configured: groups, or anything else."""

    def names(request: Any) -> Iterator[str]:
        for resource in request.resources:
            if (resource.resource_type == _GROUP_RESOURCE) is of_groups:
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
_GROUP_RESOURCE: Final = 32
_MEMBER: Final = Right(_READ, _GROUP, _one("group_id"))
_IN_TRANSACTION: Final = Right(_WRITE, _TRANSACTION, _one("transactional_id"))

HELLO: Final = frozenset((17, 18, 36))
"""What is asked before anybody is anybody."""

RIGHTS: Final[Mapping[int, Right]] = {
    0: Right(_WRITE, _TOPIC, _topics("topic_data")),
    1: Right(_READ, _TOPIC, _topics("topics")),
    2: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    3: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    8: _MEMBER,
    9: Right(_DESCRIBE, _GROUP, _groups),
    10: Right(_DESCRIBE, _CLUSTER, _cluster),
    11: _MEMBER,
    12: _MEMBER,
    13: _MEMBER,
    14: _MEMBER,
    15: Right(_DESCRIBE, _GROUP, _topics("groups")),
    16: Right(_DESCRIBE, _CLUSTER, _cluster),
    19: Right(_CREATE, _TOPIC, _topics("topics")),
    20: Right(_DELETE, _TOPIC, _topics("topics", "topic_names")),
    21: Right(_DELETE, _TOPIC, _topics("topics")),
    22: _IN_TRANSACTION,
    23: Right(_DESCRIBE, _TOPIC, _topics("topics")),
    24: _IN_TRANSACTION,
    25: _IN_TRANSACTION,
    26: _IN_TRANSACTION,
    27: Right(_ALTER, _CLUSTER, _cluster),
    28: _IN_TRANSACTION,
    29: Right(_DESCRIBE, _CLUSTER, _cluster),
    30: Right(_ALTER, _CLUSTER, _cluster),
    31: Right(_ALTER, _CLUSTER, _cluster),
    32: Right(_DESCRIBE, _TOPIC, _resources(of_groups=False)),
    33: Right(_ALTER, _TOPIC, _resources(of_groups=False)),
    34: Right(_ALTER, _CLUSTER, _cluster),
    35: Right(_DESCRIBE, _CLUSTER, _cluster),
    37: Right(_ALTER, _TOPIC, _topics("topics")),
    42: Right(_DELETE, _GROUP, _topics("groups_names")),
    43: Right(_ALTER, _CLUSTER, _cluster),
    44: Right(_ALTER, _TOPIC, _resources(of_groups=False)),
    45: Right(_ALTER, _CLUSTER, _cluster),
    46: Right(_DESCRIBE, _CLUSTER, _cluster),
    47: Right(_DELETE, _GROUP, _one("group_id")),
    55: Right(_DESCRIBE, _CLUSTER, _cluster),
    60: Right(_DESCRIBE, _CLUSTER, _cluster),
    61: Right(_READ, _TOPIC, _topics("topics")),
    65: Right(_DESCRIBE, _TRANSACTION, _topics("transactional_ids")),
    66: Right(_DESCRIBE, _CLUSTER, _cluster),
    68: _MEMBER,
    69: Right(_DESCRIBE, _GROUP, _topics("group_ids")),
    74: Right(_DESCRIBE, _CLUSTER, _cluster),
    75: Right(_DESCRIBE, _TOPIC, _topics("topics")),
}
"""By the number of the API."""

OTHERS: Final[Mapping[int, tuple[Right, ...]]] = {
    32: (Right(_DESCRIBE, _GROUP, _resources(of_groups=True)),),
    33: (Right(_ALTER, _GROUP, _resources(of_groups=True)),),
    44: (Right(_ALTER, _GROUP, _resources(of_groups=True)),),
}
"""Likewise, what else a request is about that names things of several kinds."""
