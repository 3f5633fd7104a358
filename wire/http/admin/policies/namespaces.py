"""What a namespace decides, one path per policy: `/admin/v2/namespaces/T/N/<policy>`.

Two tables say everything: those of `HELD` are fields of `NamespacePolicies`; those of `STORED` are
kept as tools send them, and only rates among them have an effect (`docs/admin.md` says why the
others have none). GET of what is not decided is 204.

Invariant: whatever is set reaches the catalog before it is answered, and topics that are loaded
right after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.policies import (
    AutoSubscriptionCreation,
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    InactiveTopics,
    NamespacePolicies,
    QuotaType,
    Retention,
    decode,
)
from magnetar.wire.http.admin.policies.limits import check, check_auto_creation, check_retention
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Handler, Table, changing, plain_text

MEBIBYTE: Final = 1024 * 1024
DEFAULTS: Final = NamespacePolicies()


class StoredPolicy(Struct, frozen=True):
    """A policy that is kept as it comes."""

    field: str
    """Its name among the policies of a namespace."""
    kind: Any
    unset: Any = None
    per_cluster: bool = False
    """Shown among the policies as a map from cluster to value."""
    plain: bool = False
    """Sent and shown as text, not as JSON."""
    absent: Any = None
    """What a request without a body sets."""


HELD: Final[dict[str, tuple[str, Any]]] = {
    "retention": ("retention_policies", Retention),
    "messageTTL": ("message_ttl_in_seconds", int),
    "deduplication": ("deduplication", bool),
    "autoTopicCreation": ("auto_topic_creation", AutoTopicCreation),
    "autoSubscriptionCreation": ("auto_subscription_creation", AutoSubscriptionCreation),
    "encryptionRequired": ("encryption_required", bool),
    "maxProducersPerTopic": ("max_producers_per_topic", int),
    "maxConsumersPerTopic": ("max_consumers_per_topic", int),
    "maxConsumersPerSubscription": ("max_consumers_per_subscription", int),
    "maxSubscriptionsPerTopic": ("max_subscriptions_per_topic", int),
    "maxTopicsPerNamespace": ("max_topics_per_namespace", int),
    "maxUnackedMessagesPerConsumer": ("max_unacked_messages_per_consumer", int),
    "maxUnackedMessagesPerSubscription": ("max_unacked_messages_per_subscription", int),
    "compactionThreshold": ("compaction_threshold", int),
    "subscriptionExpirationTime": ("subscription_expiration_time_minutes", int),
    "inactiveTopicPolicies": ("inactive_topic_policies", InactiveTopics),
    "delayedDelivery": ("delayed_delivery_policies", DelayedDelivery),
    "subscriptionTypesEnabled": ("subscription_types_enabled", list[str]),
    "replication": ("replication_clusters", list[str]),
}
"""By the last part of the path: the field of `NamespacePolicies`, and its type."""

STORED: Final[dict[str, StoredPolicy]] = {
    "schemaValidationEnforced": StoredPolicy("schema_validation_enforced", bool, False),
    "schemaCompatibilityStrategy": StoredPolicy("schema_compatibility_strategy", str, "UNDEFINED"),
    "schemaAutoUpdateCompatibilityStrategy": StoredPolicy(
        "schema_auto_update_compatibility_strategy", str, "Full"
    ),
    "isAllowAutoUpdateSchema": StoredPolicy("is_allow_auto_update_schema", bool, True),
    "persistence": StoredPolicy("persistence", dict[str, Any]),
    "dispatchRate": StoredPolicy("topicDispatchRate", dict[str, Any], per_cluster=True),
    "subscriptionDispatchRate": StoredPolicy(
        "subscriptionDispatchRate", dict[str, Any], None, True
    ),
    "replicatorDispatchRate": StoredPolicy("replicatorDispatchRate", dict[str, Any], None, True),
    "subscribeRate": StoredPolicy("clusterSubscribeRate", dict[str, Any], per_cluster=True),
    "publishRate": StoredPolicy("publishMaxMessageRate", dict[str, Any], per_cluster=True),
    "offloadThreshold": StoredPolicy("offload_threshold", int, -1),
    "offloadThresholdInSeconds": StoredPolicy("offload_threshold_in_seconds", int, -1),
    "offloadDeletionLagMs": StoredPolicy("offload_deletion_lag_ms", int),
    "offloadPolicies": StoredPolicy("offload_policies", dict[str, Any]),
    "subscriptionAuthMode": StoredPolicy("subscription_auth_mode", str, "None"),
    "deduplicationSnapshotInterval": StoredPolicy("deduplicationSnapshotIntervalSeconds", int),
    "antiAffinity": StoredPolicy("antiAffinityGroup", str, plain=True),
    "allowedClusters": StoredPolicy("allowed_clusters", list[str]),
    "dispatcherPauseOnAckStatePersistent": StoredPolicy(
        "dispatcherPauseOnAckStatePersistentEnabled", bool, False, absent=True
    ),
}
"""By the last part of the path."""
STORED_FIELDS: Final = {stored.field for stored in STORED.values()}


def shown(policies: NamespacePolicies) -> dict[str, Any]:
    """All policies of a namespace as tools read them."""
    fields = msgspec.to_builtins(policies)
    return {**fields.pop("extra"), **fields}


def taken(body: Any) -> NamespacePolicies:
    """All policies of a namespace as tools send them; what is not known is let go."""
    if not isinstance(body, dict):
        raise Invalid("policies are a JSON object")
    known = decode(msgspec.json.encode(body), NamespacePolicies)
    extra = {key: body[key] for key in STORED_FIELDS if body.get(key) is not None}
    policies = msgspec.structs.replace(known, extra=extra)
    _check_quotas(policies)
    check_auto_creation(policies.auto_topic_creation)
    return policies


async def changed(ask: Ask, **fields: Any) -> None:
    """Write some policies and see that topics learn of it."""
    catalog = ask.broker.catalog
    policies = msgspec.structs.replace(await catalog.policies(ask.namespace), **fields)
    _check_quotas(policies)
    await catalog.set_policies(ask.namespace, policies)
    ask.broker.policies_changed(ask.namespace)


def _check_quotas(policies: NamespacePolicies) -> None:
    check_retention(policies.retention_policies, policies.backlog_quota_map)


def _held(name: str, field: str, kind: Any) -> tuple[Handler, Handler, Handler]:
    """Get, set and remove a policy that has an effect."""

    async def get(ask: Ask) -> object:
        return getattr(await ask.broker.catalog.policies(ask.namespace), field)

    async def put(ask: Ask) -> None:
        value = await ask.value(kind)
        check(ask, name, value)
        await changed(ask, **{field: getattr(DEFAULTS, field) if value is None else value})

    async def remove(ask: Ask) -> None:
        await changed(ask, **{field: getattr(DEFAULTS, field)})

    return get, put, remove


def decided(stored: StoredPolicy, policies: NamespacePolicies, ask: Ask) -> Any:
    """What a namespace has decided of it, for this cluster; None where it has not."""
    value = policies.extra.get(stored.field)
    if stored.per_cluster and isinstance(value, dict):
        return value.get(ask.broker.settings.cluster)
    return value


def _stored(name: str, stored: StoredPolicy) -> tuple[Handler, Handler, Handler]:
    """Get, set and remove a policy that is only kept."""

    async def get(ask: Ask) -> object:
        value = decided(stored, await ask.broker.catalog.policies(ask.namespace), ask)
        value = stored.unset if value is None else value
        return plain_text(value) if stored.plain and value is not None else value

    async def put(ask: Ask) -> None:
        value = await ask.words() if stored.plain else await ask.value(stored.kind)
        check(ask, name, value)
        await _keep(ask, stored, stored.absent if value is None else value)

    async def remove(ask: Ask) -> None:
        await _keep(ask, stored, None)

    return get, put, remove


async def _keep(ask: Ask, stored: StoredPolicy, value: Any) -> None:
    extra = dict((await ask.broker.catalog.policies(ask.namespace)).extra)
    extra.pop(stored.field, None)
    if value is not None:
        extra[stored.field] = {ask.broker.settings.cluster: value} if stored.per_cluster else value
    await changed(ask, extra=extra)


# -- backlog quotas: one policy with two types -------------------------------------------------


async def quotas(ask: Ask) -> object:
    return (await ask.broker.catalog.policies(ask.namespace)).backlog_quota_map


async def set_quota(ask: Ask) -> None:
    quota = await ask.json(BacklogQuota)
    present = (await ask.broker.catalog.policies(ask.namespace)).backlog_quota_map
    await changed(ask, backlog_quota_map={**present, quota_type(ask): quota})


async def remove_quota(ask: Ask) -> None:
    present = dict((await ask.broker.catalog.policies(ask.namespace)).backlog_quota_map)
    present.pop(quota_type(ask), None)
    await changed(ask, backlog_quota_map=present)


async def remove_offload_policies(ask: Ask) -> None:
    """Under the name that Apache's own client asks for."""
    await _keep(ask, STORED["offloadPolicies"], None)


def quota_type(ask: Ask) -> QuotaType:
    """Of the request; by size unless it says so."""
    text = ask.text("backlogQuotaType", "destination_storage")
    if text == "destination_storage":
        return "destination_storage"
    if text == "message_age":
        return "message_age"
    raise Invalid("backlogQuotaType must be destination_storage or message_age")


def rows_of(made: Mapping[str, tuple[Handler, Handler, Handler]], here: str) -> Table:
    """Where each policy is asked for, set and removed, by its name below `here`."""
    rows: list[tuple[str, str, Handler]] = []
    for name, (get, put, remove) in made.items():
        rows += [
            ("GET", f"{here}/{name}", get),
            ("POST PUT", f"{here}/{name}", put),
            ("DELETE", f"{here}/{name}", remove),
        ]
    return rows


def _table() -> Table:
    here = "/{tenant}/{namespace}"
    rows: list[tuple[str, str, Handler]] = [
        ("GET", f"{here}/backlogQuotaMap", quotas),
        ("POST PUT", f"{here}/backlogQuota", set_quota),
        ("DELETE", f"{here}/backlogQuota", remove_quota),
        ("DELETE", f"{here}/removeOffloadPolicies", remove_offload_policies),
    ]
    made: dict[str, tuple[Handler, Handler, Handler]] = {
        **{name: _held(name, *row) for name, row in HELD.items()},
        **{name: _stored(name, row) for name, row in STORED.items()},
    }
    return changing([*rows, *rows_of(made, here)])


TABLE: Final[Table] = _table()
