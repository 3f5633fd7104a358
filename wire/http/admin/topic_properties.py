"""Properties of topics: pairs of texts that users store with them.

A topic without partitions has them in its ledger's metadata, beside the broker's own. A partitioned
topic has them in the record of its number of partitions, as in Pulsar, so that its partitions
need not be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from magnetar.core.broker.catalog import PARTITIONED
from magnetar.core.kernel.errors import Invalid, NotAllowed, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.topic.shadow_topic import SHADOW_SOURCE
from magnetar.wire.http.admin.topic_lookup import stored
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

OURS: Final = "magnetar."
"""Properties with this prefix are the broker's own."""
_FROM_CREATION: Final = "a topic is the shadow of another, or none, from its creation on"

Properties = dict[str, str]


async def get(request: AdminRequest) -> Properties:
    if await request.partitioned():
        return await of_partitioned(request)
    found = (await stored(request)).ledger.properties
    return {key: value for key, value in found.items() if not key.startswith(OURS)}


async def add(request: AdminRequest) -> None:
    body = await request.value(Any)
    await keep(request, {} if body is None else checked(body))


async def remove(request: AdminRequest) -> None:
    key = request.text("key")
    _check_key(key)
    if key == SHADOW_SOURCE:
        raise NotAllowed(_FROM_CREATION)
    if await request.partitioned():
        await _rewrite(request, lambda now: {each: now[each] for each in now if each != key})
    else:
        await (await stored(request)).ledger.set_property(key, None)


def check_source(present: Mapping[str, str], given: Properties) -> None:
    """A source stays what it is, or there stays none: `NotAllowed` else."""
    if SHADOW_SOURCE in given and given[SHADOW_SOURCE] != present.get(SHADOW_SOURCE):
        raise NotAllowed(_FROM_CREATION)


def _added(present: Properties, given: Properties) -> Properties:
    check_source(present, given)
    return {**present, **given}


async def keep(request: AdminRequest, given: Properties) -> None:
    """Add to the existing properties."""
    if not given:
        return
    if await request.partitioned():
        await _rewrite(request, lambda present: _added(present, given))
        return
    topic = await stored(request)
    check_source(topic.ledger.properties, given)
    for key, value in given.items():
        await topic.ledger.set_property(key, value)


def shown_source(request: AdminRequest, given: Properties) -> TopicName | None:
    """The source of a topic that is created as a shadow. Whoever may read the shadow then reads the
    source's messages, so its tenant's administrator has to create it, too.
    """
    if SHADOW_SOURCE not in given:
        return None
    source = TopicName.parse(given[SHADOW_SOURCE])
    request.check(Action.ALTER, ResourceType.TENANT, source.tenant)
    return source


def checked(body: Any) -> Properties:
    """The body's properties: nothing, or a flat object of texts, none of them the broker's own."""
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise Invalid("properties are an object of texts")
    for key in body:
        _check_key(key)
    return body


def _check_key(key: str) -> None:
    if key.startswith(OURS):
        raise Invalid(f"properties that begin with {OURS} are the broker's own")


# -- of partitioned topics ---------------------------------------------------------------------


async def of_partitioned(request: AdminRequest) -> Properties:
    """The properties of a partitioned topic."""
    found = await request.broker.metadata.get(_path(request))
    return _node(found.value).get("properties") or {} if found is not None else {}


async def _rewrite(request: AdminRequest, change: Callable[[Properties], Properties]) -> None:
    """Change the record, stating the version that was read: of two concurrent writers one is
    refused, and neither overwrites the other.
    """
    found = await request.broker.metadata.get(_path(request))
    if found is None:
        raise TopicNotFound(f"partitioned topic {request.topic} does not exist")
    node = _node(found.value)
    node["properties"] = change(node.get("properties") or {})
    await request.broker.metadata.put(_path(request), msgspec.json.encode(node), found.version)


def _path(request: AdminRequest) -> str:
    return f"{PARTITIONED}/{request.topic.managed_ledger}"


def _node(value: bytes) -> dict[str, Any]:
    return msgspec.json.decode(value, type=dict[str, Any])


PATH: Final = "/{tenant}/{namespace}/{topic}/properties"
TABLE: Final[Table] = (
    ("GET", PATH, get, Needs.TOPIC),
    ("PUT", PATH, add, Needs.TENANT_ADMIN),
    ("DELETE", PATH, remove, Needs.TENANT_ADMIN),
)
