"""Properties of topics: what users note beside them, and find again.

One without partitions has them in its ledger's metadata, beside the broker's own. A partitioned
topic has them where its number of partitions stands, as Pulsar keeps them, so that its partitions
need not be loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from magnetar.core.broker.catalog import PARTITIONED
from magnetar.core.kernel.errors import Invalid, TopicNotFound
from magnetar.wire.http.admin.reaching import stored
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Table, not_here

OURS: Final = "magnetar."
"""Properties that begin so are the broker's own."""
SHADOW: Final = "PULSAR.SHADOW_SOURCE"
"""By this property a topic would be the shadow of another."""

Properties = dict[str, str]


async def get(ask: Ask) -> Properties:
    if await ask.partitioned():
        return await of_partitioned(ask)
    found = (await stored(ask)).ledger.properties
    return {key: value for key, value in found.items() if not key.startswith(OURS)}


async def add(ask: Ask) -> None:
    await keep(ask, checked(await ask.value(Any) or {}))


async def remove(ask: Ask) -> None:
    key = ask.text("key")
    _check_key(key)
    if await ask.partitioned():
        await _rewrite(ask, lambda now: {each: now[each] for each in now if each != key})
    else:
        await (await stored(ask)).ledger.remove_property(key)


async def keep(ask: Ask, given: Properties) -> None:
    """Add to what is there."""
    if not given:
        return
    if await ask.partitioned():
        await _rewrite(ask, lambda present: {**present, **given})
        return
    topic = await stored(ask)
    for key, value in given.items():
        await topic.ledger.set_property(key, value)


def checked(body: Any) -> Properties:
    """Nothing, or a flat object of texts, none of them the broker's own."""
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise Invalid("properties are an object of texts")
    for key in body:
        _check_key(key)
    return body


def _check_key(key: str) -> None:
    if key.startswith(OURS):
        raise Invalid(f"properties that begin with {OURS} are the broker's own")
    if key == SHADOW:
        raise not_here("a topic is not the shadow of another in this server")


# -- of partitioned topics ---------------------------------------------------------------------


async def of_partitioned(ask: Ask) -> Properties:
    """Those of the topic as a whole."""
    found = await ask.broker.metadata.get(_path(ask))
    return _node(found.value).get("properties") or {} if found is not None else {}


async def _rewrite(ask: Ask, change: Callable[[Properties], Properties]) -> None:
    """Against the version that was read: two who write at once are told, and none overwritten."""
    found = await ask.broker.metadata.get(_path(ask))
    if found is None:
        raise TopicNotFound(f"partitioned topic {ask.topic} does not exist")
    node = _node(found.value)
    node["properties"] = change(node.get("properties") or {})
    await ask.broker.metadata.put(_path(ask), msgspec.json.encode(node), found.version)


def _path(ask: Ask) -> str:
    return f"{PARTITIONED}/{ask.topic.managed_ledger}"


def _node(value: bytes) -> dict[str, Any]:
    return msgspec.json.decode(value, type=dict[str, Any])


PATH: Final = "/{tenant}/{namespace}/{topic}/properties"
TABLE: Final[Table] = (("GET", PATH, get), ("PUT", PATH, add), ("DELETE", PATH, remove))
