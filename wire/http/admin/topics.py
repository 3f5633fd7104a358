"""`/admin/v2/{persistent,non-persistent}`: topics come, grow and go."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from magnetar.core.broker import administration
from magnetar.core.broker.topic_list import topics_of
from magnetar.core.policy.values import AuthPolicies
from magnetar.wire.http.admin import topic_properties
from magnetar.wire.http.admin.policies.namespaces import change
from magnetar.wire.http.admin.reaching import AdminMessageId, each, each_stored, message_id, stored
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Table, alone, not_here


class LongWork(Struct, frozen=True, rename="camel"):
    """How far a compaction or an offload is."""

    status: str = "NOT_RUN"
    last_error: str = ""


# -- listing -----------------------------------------------------------------------------------


async def listed(ask: Ask) -> list[str]:
    """Full names, partitions as the topics they are."""
    await ask.broker.catalog.policies(ask.namespace)
    begin = f"{ask.domain}://"
    return [name for name in await topics_of(ask.broker, ask.namespace) if name.startswith(begin)]


async def partitioned(ask: Ask) -> list[str]:
    await ask.broker.catalog.policies(ask.namespace)
    found = await ask.broker.catalog.partitioned_of(ask.namespace)
    return sorted(name.full for name in found if name.domain == ask.domain)


# -- one topic ---------------------------------------------------------------------------------


async def create(ask: Ask) -> None:
    body = await ask.value(dict[str, Any]) or {}
    given = topic_properties.checked(body.get("properties", body))
    if given and not ask.topic.persistent:
        raise not_here("a topic that stores nothing keeps no properties")
    await administration.create_topic(ask.broker, ask.topic)
    await topic_properties.keep(ask, given)


async def delete(ask: Ask) -> None:
    await administration.delete_topic(ask.broker, ask.topic, force=ask.flag("force"))


async def unload(ask: Ask) -> None:
    for topic in await each(ask):
        await ask.broker.unload(topic.name)


async def terminate(ask: Ask) -> AdminMessageId:
    """Nothing may be published any more; the last message is named."""
    topic = await stored(ask)
    return message_id(topic, await topic.terminate())


async def terminate_partitions(ask: Ask) -> dict[int, AdminMessageId]:
    await administration.partitions_of(ask.broker, ask.topic)
    topics = await each_stored(ask)
    return {
        topic.name.partition_index: message_id(topic, await topic.terminate()) for topic in topics
    }


async def truncate(ask: Ask) -> None:
    """All subscriptions are at the end, and everything before it is deleted, retained or not."""
    for topic in await each_stored(ask):
        for subscription in list(topic.subscriptions.values()):
            if subscription.cursor.backlog:
                subscription.skip_to(topic.ledger.chain.confirmed)
                await subscription.cursor.saved()
        await topic.ledger.roll()
        closed = [segment.ledger_id for segment in topic.ledger.chain.segments if segment.closed_ms]
        await topic.ledger.trim(closed)


async def trim(ask: Ask) -> None:
    """What nobody needs any more is deleted now, not with the next round."""
    for topic in await each_stored(ask):
        await ask.broker.housekeeping.trim(topic)


# -- what this server has not ------------------------------------------------------------------


async def work_status(ask: Ask) -> LongWork:
    await each_stored(ask)
    return LongWork()


async def compact(ask: Ask) -> None:
    await each_stored(ask)
    raise not_here("topics are not compacted by this server yet")


async def offload(ask: Ask) -> None:
    await each_stored(ask)
    raise not_here("ledgers are not offloaded by this server yet")


# -- permissions ------------------------------------------------------------------------------


async def permissions(ask: Ask) -> dict[str, list[str]]:
    """Those of the namespace, and those of the topic itself."""
    auth = (await ask.broker.catalog.policies(ask.namespace)).auth_policies
    return {**auth.namespace_auth, **auth.topic_auth.get(ask.topic.full, {})}


async def grant(ask: Ask) -> None:
    await _set_actions(ask, await ask.value(list[str]) or [])


async def revoke(ask: Ask) -> None:
    await _set_actions(ask, None)


async def _set_actions(ask: Ask, actions: list[str] | None) -> None:
    auth = (await ask.broker.catalog.policies(ask.namespace)).auth_policies
    roles = dict(auth.topic_auth.get(ask.topic.full, {}))
    roles.pop(ask.part("role"), None)
    if actions is not None:
        roles[ask.part("role")] = sorted(set(actions))
    topics = {**auth.topic_auth, ask.topic.full: roles}
    await change(
        ask, auth_policies=AuthPolicies(auth.namespace_auth, topics, auth.subscription_auth)
    )


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", "/{tenant}/{namespace}", listed),
    ("GET", "/{tenant}/{namespace}/partitioned", partitioned),
    ("PUT", HERE, create),
    ("DELETE", HERE, delete),
    ("PUT", f"{HERE}/unload", unload),
    ("POST", f"{HERE}/terminate", terminate),
    ("POST", f"{HERE}/terminate/partitions", terminate_partitions),
    ("DELETE", f"{HERE}/truncate", truncate),
    ("POST", f"{HERE}/trim", trim),
    ("GET", f"{HERE}/compaction", work_status),
    ("PUT", f"{HERE}/compaction", compact),
    ("GET", f"{HERE}/offload", work_status),
    ("PUT", f"{HERE}/offload", offload),
    ("GET", f"{HERE}/permissions", permissions),
    ("POST", f"{HERE}/permissions/{{role}}", alone(grant)),
    ("DELETE", f"{HERE}/permissions/{{role}}", alone(revoke)),
)
