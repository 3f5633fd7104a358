"""`/admin/v2/{persistent,non-persistent}`: creating, listing, terminating and deleting topics."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from magnetar.core.broker import administration
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.ledger.compacted.compacted_topic import CompactionState
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.topic import log_start
from magnetar.core.topic.restrictions import check_log_changeable, check_owns_log
from magnetar.core.topic.shadow_topic import SHADOW_SOURCE
from magnetar.wire.http.admin import topic_properties
from magnetar.wire.http.admin.access import known_actions
from magnetar.wire.http.admin.policies.namespaces import change
from magnetar.wire.http.admin.topic_lookup import (
    AdminMessageId,
    check_creatable,
    check_no_stray,
    check_unlisted,
    each,
    each_stored,
    message_id,
    stored,
)
from magnetar.wire.http.endpoints.lookup import check_bundle
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, exclusive, not_here


class LongWork(Struct, frozen=True, rename="camel"):
    """The progress of a compaction or an offload."""

    status: str = CompactionState.NOT_RUN.value
    last_error: str = ""


TELLING: Final = (
    CompactionState.RUNNING,
    CompactionState.ERROR,
    CompactionState.NOT_RUN,
    CompactionState.SUCCESS,
)
"""What is told of partitions: the first of these that one of them has."""


# -- listing -----------------------------------------------------------------------------------


def system_too(request: AdminRequest) -> bool:
    """Whether the system's topics are to be listed."""
    return request.flag("includeSystemTopic")


async def listed(request: AdminRequest) -> list[str]:
    """Full names of the topics; each partition is one of them."""
    await request.broker.catalog.policies(request.namespace)
    begin = f"{request.domain}://"
    return [
        name
        for name in await topics_of(request.broker, request.namespace, system=system_too(request))
        if name.startswith(begin)
    ]


async def partitioned(request: AdminRequest) -> list[str]:
    await request.broker.catalog.policies(request.namespace)
    found = await request.broker.catalog.partitioned_of(request.namespace)
    system = system_too(request)
    return sorted(
        name.full for name in found if name.domain == request.domain and (system or not name.system)
    )


async def of_bundle(request: AdminRequest) -> list[str]:
    """Those of the only bundle (`NonPersistentTopics.java` of 4.2)."""
    check_bundle(request)
    return await listed(request)


# -- one topic ---------------------------------------------------------------------------------


async def create(request: AdminRequest) -> None:
    check_creatable(request.topic)
    await check_no_stray(request.broker, request.topic)
    body = await request.value(dict[str, Any]) or {}
    inner = body.get("properties")  # of that name, if it is a text
    given = topic_properties.checked(inner if isinstance(inner, dict) else body)
    if given and not request.topic.persistent:
        raise not_here("a topic that stores nothing keeps no properties")
    source = topic_properties.shown_source(request, given)
    if source is None:
        await administration.create_topic(request.broker, request.topic)
    else:
        await administration.create_shadow(request.broker, request.topic, source)
        del given[SHADOW_SOURCE]
    await topic_properties.keep(request, given)


async def delete(request: AdminRequest) -> None:
    await check_unlisted(request)
    await administration.delete_topic(request.broker, request.topic, force=request.flag("force"))


async def unload(request: AdminRequest) -> None:
    for topic in await each(request):
        await request.broker.unload(topic.name)


async def terminate(request: AdminRequest) -> AdminMessageId:
    """Close the topic to producers for good; the answer is the last message's id."""
    topic = await stored(request)
    return message_id(topic, await topic.terminate())


async def terminate_partitions(request: AdminRequest) -> dict[int, AdminMessageId]:
    await administration.partitions_of(request.broker, request.topic)
    topics = await each_stored(request)
    return {
        topic.name.partition_index: message_id(topic, await topic.terminate()) for topic in topics
    }


async def truncate(request: AdminRequest) -> None:
    """Move all subscriptions to the end and delete everything before it, retained or not."""
    await log_start.truncate(await each_stored(request))


async def trim(request: AdminRequest) -> None:
    """Delete unneeded ledgers now, not in the next round."""
    topics = await each_stored(request)
    for topic in topics:
        check_owns_log(topic)
    for topic in topics:
        await request.broker.housekeeping.trim(topic)


# -- compaction --------------------------------------------------------------------------------


async def compact(request: AdminRequest) -> None:
    """Compact beside the log, as soon as no other topic is being compacted."""
    topics = await each_stored(request)
    for topic in topics:
        check_log_changeable(topic)
    for topic in topics:
        request.broker.housekeeping.compactor.request(topic)


async def compaction_status(request: AdminRequest) -> LongWork:
    """The state of the last compaction since the topic was loaded; of partitions, that of the first
    one that says most.
    """
    found = [topic.compacted.progress for topic in await each_stored(request)]
    last = min(found, key=lambda one: TELLING.index(one.state))
    return LongWork(last.state.value, last.last_error)


# -- not supported -----------------------------------------------------------------------------


async def work_status(request: AdminRequest) -> LongWork:
    await each_stored(request)
    return LongWork()


async def offload(request: AdminRequest) -> None:
    await each_stored(request)
    raise not_here("ledgers are not offloaded by this server yet")


# -- permissions ------------------------------------------------------------------------------


async def permissions(request: AdminRequest) -> dict[str, list[str]]:
    """The permissions of the namespace and of the topic itself."""
    auth = (await request.broker.catalog.policies(request.namespace)).auth_policies
    return {**auth.namespace_auth, **auth.topic_auth.get(request.topic.full, {})}


async def grant(request: AdminRequest) -> None:
    await _set_actions(request, await request.value(list[str]) or [])


async def revoke(request: AdminRequest) -> None:
    await _set_actions(request, None)


async def _set_actions(request: AdminRequest, actions: list[str] | None) -> None:
    auth = (await request.broker.catalog.policies(request.namespace)).auth_policies
    roles = dict(auth.topic_auth.get(request.topic.full, {}))
    roles.pop(request.part("role"), None)
    if actions is not None:
        roles[request.part("role")] = known_actions(actions)
    topics = {**auth.topic_auth, request.topic.full: roles}
    await change(
        request, auth_policies=AuthPolicies(auth.namespace_auth, topics, auth.subscription_auth)
    )


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", "/{tenant}/{namespace}", listed, Needs.NAMESPACE),
    ("GET", "/{tenant}/{namespace}/partitioned", partitioned, Needs.NAMESPACE),
    ("GET", "/{tenant}/{namespace}/0x{range}", of_bundle, Needs.NAMESPACE),
    ("PUT", HERE, create, Needs.TENANT_ADMIN),
    ("DELETE", HERE, delete, Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/unload", unload, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/terminate", terminate, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/terminate/partitions", terminate_partitions, Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/truncate", truncate, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/trim", trim, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/compaction", compaction_status, Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/compaction", compact, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/offload", work_status, Needs.TENANT_ADMIN),
    ("PUT", f"{HERE}/offload", offload, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/permissions", permissions, Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/permissions/{{role}}", exclusive(grant), Needs.TENANT_ADMIN),
    ("DELETE", f"{HERE}/permissions/{{role}}", exclusive(revoke), Needs.TENANT_ADMIN),
)
