"""`/admin/v2/{persistent,non-persistent}`: topics come, grow and go."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from core import administration
from core.errors import Invalid
from core.policies import AuthPolicies
from wire.http.admin.namespace_policies import changed
from wire.http.admin.reaching import MessageId, each, each_stored, message_id, stored
from wire.http.asking import Ask, plain
from wire.http.routes import Table, not_here

OURS: Final = "magnetar."
"""Properties that begin so are the broker's own."""


class PartitionedTopic(Struct, frozen=True, rename="camel"):
    """What tools know of a partitioned topic."""

    partitions: int
    deleted: bool = False


class LongWork(Struct, frozen=True, rename="camel"):
    """How far a compaction or an offload is."""

    status: str = "NOT_RUN"
    last_error: str = ""


# -- listing -----------------------------------------------------------------------------------


async def listed(ask: Ask) -> list[str]:
    """Full names, partitions as the topics they are."""
    await ask.broker.catalog.policies(ask.namespace)
    begin = f"{ask.domain}://"
    return [name for name in await ask.broker.topics_of(ask.namespace) if name.startswith(begin)]


async def partitioned(ask: Ask) -> list[str]:
    await ask.broker.catalog.policies(ask.namespace)
    found = await ask.broker.catalog.partitioned_of(ask.namespace)
    return sorted(name.full for name in found if name.domain == ask.domain)


# -- one topic ---------------------------------------------------------------------------------


async def create(ask: Ask) -> None:
    given = await _properties_sent(ask)
    topic = await administration.create_topic(ask.broker, ask.topic)
    if given and not topic.name.persistent:
        raise not_here("a topic that stores nothing keeps no properties")
    if given:
        await set_properties_of(ask, given)


async def delete(ask: Ask) -> None:
    await administration.delete_topic(ask.broker, ask.topic, force=ask.flag("force"))


async def unload(ask: Ask) -> None:
    for topic in await each(ask):
        await ask.broker.unload(topic.name)


async def terminate(ask: Ask) -> MessageId:
    """Nothing may be published any more; the last message is named."""
    topic = await stored(ask)
    return message_id(topic, await topic.terminate())


async def terminate_partitions(ask: Ask) -> dict[int, MessageId]:
    await administration.partitions_of(ask.broker, ask.topic)
    topics = await each_stored(ask)
    return {
        topic.name.partition_index: message_id(topic, await topic.terminate()) for topic in topics
    }


async def truncate(ask: Ask) -> None:
    """All subscriptions are at the end, and everything before it is deleted, retained or not."""
    for topic in await each_stored(ask):
        for subscription in topic.subscriptions.values():
            subscription.skip_to(topic.ledger.chain.confirmed)
        await topic.ledger.roll()
        closed = [segment.ledger_id for segment in topic.ledger.chain.segments if segment.closed_ms]
        await topic.ledger.trim(closed)


async def trim(ask: Ask) -> None:
    """What nobody needs any more is deleted now, not with the next round."""
    for topic in await each_stored(ask):
        await ask.broker.housekeeping.trim(topic)


# -- partitions --------------------------------------------------------------------------------


async def create_partitions(ask: Ask) -> None:
    """The body is a bare number, or an object that has it."""
    await administration.create_partitioned(ask.broker, ask.topic, await _partitions_sent(ask))


async def grow_partitions(ask: Ask) -> None:
    await administration.grow_partitioned(ask.broker, ask.topic, await _partitions_sent(ask))


async def _partitions_sent(ask: Ask) -> int:
    body = await ask.value(Any)
    if isinstance(body, dict):
        body = body.get("partitions")
    if body is None:
        raise Invalid("the body must say how many partitions")
    return int(plain(str(body).encode(), int))


async def partitions(ask: Ask) -> PartitionedTopic:
    """How many partitions: 0 for a topic without. Clients over HTTP have it created by asking."""
    if ask.flag("checkAllowAutoCreation"):
        await ask.broker.catalog.policies(ask.namespace)
        return PartitionedTopic(await ask.broker.partitions_or_create(ask.topic, create=True))
    return PartitionedTopic(await ask.broker.partitions_or_create(ask.topic, create=False))


async def delete_partitions(ask: Ask) -> None:
    await administration.delete_partitioned(ask.broker, ask.topic, force=ask.flag("force"))


async def create_missing(ask: Ask) -> None:
    await administration.create_missing_partitions(ask.broker, ask.topic)


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


# -- properties and permissions ----------------------------------------------------------------


async def properties(ask: Ask) -> dict[str, str]:
    topics = await each_stored(ask)
    found = topics[0].ledger.properties
    return {key: value for key, value in found.items() if not key.startswith(OURS)}


async def set_properties(ask: Ask) -> None:
    await set_properties_of(ask, await ask.value(dict[str, str]) or {})


async def set_properties_of(ask: Ask, given: dict[str, str]) -> None:
    """Every partition keeps them, since a partitioned topic is only a number here."""
    if any(key.startswith(OURS) for key in given):
        raise Invalid(f"properties that begin with {OURS} are the broker's own")
    for topic in await each_stored(ask):
        for key, value in given.items():
            await topic.ledger.set_property(key, value)


async def _properties_sent(ask: Ask) -> dict[str, str]:
    body = await ask.value(dict[str, Any]) or {}
    return plain_properties(body.get("properties", body))


def plain_properties(body: Any) -> dict[str, str]:
    """Nothing, or a flat object of texts."""
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise Invalid("properties are an object of texts")
    return body


async def remove_property(ask: Ask) -> None:
    key = ask.text("key")
    if key.startswith(OURS):
        raise Invalid(f"properties that begin with {OURS} are the broker's own")
    for topic in await each_stored(ask):
        await topic.ledger.remove_property(key)


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
    await changed(
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
    ("PUT", f"{HERE}/partitions", create_partitions),
    ("POST", f"{HERE}/partitions", grow_partitions),
    ("GET", f"{HERE}/partitions", partitions),
    ("DELETE", f"{HERE}/partitions", delete_partitions),
    ("POST", f"{HERE}/createMissedPartitions", create_missing),
    ("GET", f"{HERE}/compaction", work_status),
    ("PUT", f"{HERE}/compaction", compact),
    ("GET", f"{HERE}/offload", work_status),
    ("PUT", f"{HERE}/offload", offload),
    ("GET", f"{HERE}/properties", properties),
    ("PUT", f"{HERE}/properties", set_properties),
    ("DELETE", f"{HERE}/properties", remove_property),
    ("GET", f"{HERE}/permissions", permissions),
    ("POST", f"{HERE}/permissions/{{role}}", grant),
    ("DELETE", f"{HERE}/permissions/{{role}}", revoke),
)
