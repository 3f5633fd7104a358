"""`/admin/v2/persistent/T/N/topic/partitions`, and non-persistent: partitioned topics."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.wire.http.admin import topic_properties
from magnetar.wire.http.admin.topic_lookup import (
    PARTITION,
    check_creatable,
    check_no_partition,
    check_one_owner,
    check_unlisted,
)
from magnetar.wire.http.audited import note_made
from magnetar.wire.http.request import AdminRequest, plain
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, exclusive


class PartitionedTopic(Struct, frozen=True, rename="camel"):
    """A partitioned topic in the form that tools read."""

    partitions: int
    deleted: bool = False
    properties: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


async def create(request: AdminRequest) -> None:
    """The number of partitions and the properties; the body may also be the bare number."""
    check_creatable(request.topic)
    if PARTITION in request.topic.local:
        raise InvalidName(f"Partitioned Topic Name should not contain '{PARTITION}'")
    number, properties = await _sent(request)
    topic_properties.shown_source(request, properties)
    await administration.create_partitioned(request.broker, request.topic, number, properties)


async def grow(request: AdminRequest) -> None:
    """Change the number of partitions. The properties stay, and those that are sent are added."""
    check_no_partition(request.topic)
    number, properties = await _sent(request)
    topic_properties.check_source(await topic_properties.of_partitioned(request), properties)
    await administration.grow_partitioned(request.broker, request.topic, number)
    await topic_properties.keep(request, properties)


async def _sent(request: AdminRequest) -> tuple[int, dict[str, str]]:
    body = await request.value(Any)
    properties: dict[str, str] = {}
    if isinstance(body, dict):
        properties = topic_properties.checked(body.get("properties") or {})
        body = body.get("partitions")
    if body is None:
        raise Invalid("the body must say how many partitions")
    return int(plain(str(body).encode(), int)), properties


async def get(request: AdminRequest) -> PartitionedTopic:
    """The number of partitions, 0 for a topic without. The request may create the topic, as in
    Apache's broker.
    """
    create = request.flag("checkAllowAutoCreation")
    before = 0
    if create:
        await request.broker.catalog.policies(request.namespace)
        before = await request.broker.catalog.partitions(request.topic)
    number = await request.broker.partitions_or_create(request.topic, create=create)
    if create and number and not before:
        note_made(request, f"topic {request.topic}")
    if not number:
        return PartitionedTopic(0)
    properties = await topic_properties.of_partitioned(request)
    return PartitionedTopic(number, properties=properties or msgspec.UNSET)


async def delete(request: AdminRequest) -> None:
    check_no_partition(request.topic)
    names = await administration.partitions_of(request.broker, request.topic)
    await check_one_owner(request, names)
    await check_unlisted(request)
    await administration.delete_partitioned(
        request.broker, request.topic, force=request.flag("force")
    )


async def create_missing(request: AdminRequest) -> None:
    check_no_partition(request.topic)
    await administration.create_missing_partitions(request.broker, request.topic)


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("PUT", f"{HERE}/partitions", create, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/partitions", exclusive(grow), Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/partitions", get, Needs.TOPIC),
    ("DELETE", f"{HERE}/partitions", delete, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/createMissedPartitions", create_missing, Needs.TENANT_ADMIN),
)
