"""`/admin/v2/persistent/T/N/topic/partitions`, and non-persistent: partitioned topics."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import Invalid
from magnetar.wire.http.admin import topic_properties
from magnetar.wire.http.asking import Ask, plain
from magnetar.wire.http.routes import Table, alone


class PartitionedTopic(Struct, frozen=True, rename="camel"):
    """What tools know of a partitioned topic."""

    partitions: int
    deleted: bool = False
    properties: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


async def create(ask: Ask) -> None:
    """The body is a bare number, or an object that has it, and may have properties."""
    number, properties = await _sent(ask)
    await administration.create_partitioned(ask.broker, ask.topic, number)
    await topic_properties.keep(ask, properties)


async def grow(ask: Ask) -> None:
    """Properties stay, whoever wrote the new number."""
    number, properties = await _sent(ask)
    before = await topic_properties.of_partitioned(ask)
    await administration.grow_partitioned(ask.broker, ask.topic, number)
    await topic_properties.keep(ask, {**before, **properties})


async def _sent(ask: Ask) -> tuple[int, dict[str, str]]:
    body = await ask.value(Any)
    properties: dict[str, str] = {}
    if isinstance(body, dict):
        properties = topic_properties.checked(body.get("properties") or {})
        body = body.get("partitions")
    if body is None:
        raise Invalid("the body must say how many partitions")
    return int(plain(str(body).encode(), int)), properties


async def get(ask: Ask) -> PartitionedTopic:
    """How many partitions: 0 for a topic without. Clients over HTTP have it created by asking."""
    create = ask.flag("checkAllowAutoCreation")
    if create:
        await ask.broker.catalog.policies(ask.namespace)
    number = await ask.broker.partitions_or_create(ask.topic, create=create)
    if not number:
        return PartitionedTopic(0)
    properties = await topic_properties.of_partitioned(ask)
    return PartitionedTopic(number, properties=properties or msgspec.UNSET)


async def delete(ask: Ask) -> None:
    await administration.delete_partitioned(ask.broker, ask.topic, force=ask.flag("force"))


async def create_missing(ask: Ask) -> None:
    await administration.create_missing_partitions(ask.broker, ask.topic)


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("PUT", f"{HERE}/partitions", create),
    ("POST", f"{HERE}/partitions", alone(grow)),
    ("GET", f"{HERE}/partitions", get),
    ("DELETE", f"{HERE}/partitions", delete),
    ("POST", f"{HERE}/createMissedPartitions", create_missing),
)
