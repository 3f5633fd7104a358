"""What one topic decides for itself: `/admin/v2/persistent/T/N/topic/<policy>`.

As for namespaces: fields of `TopicPolicies` have an effect, those of `STORED` are kept for tools.
`?applied=true` asks for what holds, whoever decided it. Policies belong to the whole topic: asked
of a partition, they are those of the topic it is a partition of.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.policy.policies import (
    AutoSubscriptionCreation,
    BacklogQuota,
    DelayedDelivery,
    Effective,
    InactiveTopics,
    Retention,
    TopicPolicies,
)
from magnetar.wire.http.admin.policies.applied import of_namespace_or_broker
from magnetar.wire.http.admin.policies.limits import check_of_topic, check_retention
from magnetar.wire.http.admin.policies.namespaces import quota_type, rows_of
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Handler, Table, changing

DEFAULTS: Final = TopicPolicies()


class Held(Struct, frozen=True):
    """A policy that has an effect."""

    field: str
    """Of `TopicPolicies`."""
    kind: Any
    applied: str = ""
    """Of `Effective`, where that can be asked for."""


HELD: Final[dict[str, Held]] = {
    "retention": Held("retention", Retention, "retention"),
    "messageTTL": Held("message_ttl", int, "message_ttl_seconds"),
    "maxProducers": Held("max_producers", int, "max_producers_per_topic"),
    "maxConsumers": Held("max_consumers", int, "max_consumers_per_topic"),
    "maxConsumersPerSubscription": Held(
        "max_consumers_per_subscription", int, "max_consumers_per_subscription"
    ),
    "maxSubscriptionsPerTopic": Held("max_subscriptions", int, "max_subscriptions_per_topic"),
    "maxUnackedMessagesOnConsumer": Held(
        "max_unacked_on_consumer", int, "max_unacked_per_consumer"
    ),
    "maxUnackedMessagesOnSubscription": Held(
        "max_unacked_on_subscription", int, "max_unacked_per_subscription"
    ),
    "maxMessageSize": Held("max_message_size", int),
    "inactiveTopicPolicies": Held("inactive_topics", InactiveTopics, "inactive_topics"),
    "delayedDelivery": Held("delayed_delivery", DelayedDelivery, "delayed_delivery"),
    "autoSubscriptionCreation": Held(
        "auto_subscription_creation", AutoSubscriptionCreation, "auto_subscription_creation"
    ),
    "subscriptionTypesEnabled": Held("subscription_types", list[str], "subscription_types"),
    "deduplicationEnabled": Held("deduplication", bool, "deduplication"),
    "deduplication": Held("deduplication", bool, "deduplication"),
    "compactionThreshold": Held("compaction_threshold", int, "compaction_threshold"),
}
"""By the last part of the path."""

STORED: Final[dict[str, Any]] = {
    "persistence": dict[str, Any],
    "dispatchRate": dict[str, Any],
    "subscriptionDispatchRate": dict[str, Any],
    "replicatorDispatchRate": dict[str, Any],
    "publishRate": dict[str, Any],
    "subscribeRate": dict[str, Any],
    "deduplicationSnapshotInterval": int,
    "offloadPolicies": dict[str, Any],
    "schemaValidationEnforced": bool,
    "schemaCompatibilityStrategy": str,
    "replication": list[str],
    "dispatcherPauseOnAckStatePersistent": bool,
}
"""By the last part of the path: the type."""
UNSET: Final[dict[str, Any]] = {
    "schemaValidationEnforced": False,
    "dispatcherPauseOnAckStatePersistent": False,
}
"""What is told of those that are not set; of all others nothing."""
ABSENT: Final[dict[str, Any]] = {"dispatcherPauseOnAckStatePersistent": True}
"""What a request without a body sets."""


async def _policies(ask: Ask) -> TopicPolicies:
    """Of a topic that exists."""
    name = ask.topic
    if not await ask.broker.catalog.partitions(name) and not await ask.broker.exists(name):
        raise TopicNotFound(f"topic {name} does not exist")
    return await ask.broker.catalog.topic_policies(name)


async def _changed(ask: Ask, **fields: Any) -> None:
    policies = msgspec.structs.replace(await _policies(ask), **fields)
    check_retention(policies.retention, policies.backlog_quotas)
    await ask.broker.catalog.set_topic_policies(ask.topic, policies)
    ask.broker.policies_changed(ask.topic.namespace)


async def _applied(ask: Ask) -> Effective:
    await _policies(ask)
    return await ask.broker.catalog.effective(ask.topic)


def _held(name: str, held: Held) -> tuple[Handler, Handler, Handler]:
    """Get, set and remove a policy that has an effect."""

    async def get(ask: Ask) -> object:
        if held.applied and ask.flag("applied"):
            found = getattr(await _applied(ask), held.applied)
            return held.kind(found) if held.kind is AutoSubscriptionCreation else found
        return getattr(await _policies(ask), held.field)

    async def put(ask: Ask) -> None:
        # numbers come in the query from some tools, in the body from others
        sent = ask.text(name)
        value = ask.number(name, 0) if sent else await ask.value(held.kind)
        check_of_topic(ask, name, value)
        await _changed(ask, **{held.field: value})

    async def remove(ask: Ask) -> None:
        await _changed(ask, **{held.field: getattr(DEFAULTS, held.field)})

    return get, put, remove


def _stored(name: str, kind: Any) -> tuple[Handler, Handler, Handler]:
    """Get, set and remove a policy that is only kept."""

    async def get(ask: Ask) -> object:
        found = (await _policies(ask)).extra.get(name)
        if found is None and ask.flag("applied"):
            found = await of_namespace_or_broker(ask, name)
        return UNSET.get(name) if found is None else found

    async def put(ask: Ask) -> None:
        value = await ask.value(kind)
        check_of_topic(ask, name, value)
        await _keep(ask, name, ABSENT.get(name) if value is None else value)

    async def remove(ask: Ask) -> None:
        await _keep(ask, name, None)

    return get, put, remove


async def _keep(ask: Ask, name: str, value: Any) -> None:
    extra = dict((await _policies(ask)).extra)
    extra.pop(name, None)
    if value is not None:
        extra[name] = value
    await _changed(ask, extra=extra)


async def forget(ask: Ask) -> None:
    """The topic decides nothing for itself any more."""
    await _policies(ask)
    await ask.broker.catalog.set_topic_policies(ask.topic, DEFAULTS)
    ask.broker.policies_changed(ask.topic.namespace)


# -- backlog quotas: one policy with two types -------------------------------------------------


async def quotas(ask: Ask) -> object:
    if ask.flag("applied"):  # both kinds, as tools expect it: what is not limited is -1
        none = BacklogQuota()
        return {
            "destination_storage": none,
            "message_age": none,
            **(await _applied(ask)).backlog_quotas,
        }
    return (await _policies(ask)).backlog_quotas


async def set_quota(ask: Ask) -> None:
    quota = await ask.json(BacklogQuota)
    present = (await _policies(ask)).backlog_quotas
    await _changed(ask, backlog_quotas={**present, quota_type(ask): quota})


async def remove_quota(ask: Ask) -> None:
    present = dict((await _policies(ask)).backlog_quotas)
    present.pop(quota_type(ask), None)
    await _changed(ask, backlog_quotas=present)


def _table() -> Table:
    here = "/{tenant}/{namespace}/{topic}"
    rows: list[tuple[str, str, Handler]] = [
        ("GET", f"{here}/backlogQuotaMap", quotas),
        ("POST PUT", f"{here}/backlogQuota", set_quota),
        ("DELETE", f"{here}/backlogQuota", remove_quota),
        ("DELETE", f"{here}/policies", forget),
    ]
    made: dict[str, tuple[Handler, Handler, Handler]] = {
        **{name: _held(name, held) for name, held in HELD.items()},
        **{name: _stored(name, kind) for name, kind in STORED.items()},
    }
    return changing([*rows, *rows_of(made, here)])


TABLE: Final[Table] = _table()
