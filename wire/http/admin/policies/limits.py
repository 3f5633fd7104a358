"""Checks of policy values, with Pulsar's statuses and messages.

Tools show the messages, and people search for them, so they are those of Apache's broker
(`NamespacesBase.java`, `PersistentTopicsBase.java`, `AdminResource.java` of 4.2). Values that
Apache accepts and this server does not support are refused with messages of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException

from magnetar.core.broker.catalog import PARTITIONS_MAX
from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.declaration import Levels, Policy, Scope
from magnetar.core.policy.java_values import fields_of
from magnetar.core.policy.persistence import Persistence
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import (
    SUBSCRIPTION_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    QuotaType,
    Retention,
)
from magnetar.wire.http.request import AdminRequest, distinct
from magnetar.wire.http.routes import not_here

MEBIBYTE: Final = 1024 * 1024
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
LONGS: Final = frozenset(
    [
        "dispatch_rate_in_bytes",
        "dispatch_throttling_rate_in_byte",
        "limit_size",
        "managed_ledger_offload_deletion_lag_in_millis",
        "managed_ledger_offload_threshold_in_bytes",
        "managed_ledger_offload_threshold_in_seconds",
        "max_delivery_delay_in_millis",
        "publish_rate_in_bytes",
        "publish_throttling_rate_in_byte",
        "retention_size_in_mb",
        "tick_time",
    ]
)
"""Fields of 64 bits; all other numbers of policies have 32 in Java."""
BOOKIES_MAX: Final = 5
"""Of one ledger; Apache's `managedLedgerMaxEnsembleSize`, `...WriteQuorum` and `...AckQuorum`."""
AUTH_MODES: Final = ("None", "Prefix")


def checked(request: AdminRequest, policy: Policy, scope: Scope, value: Any) -> Any:
    """The value as it is stored; raises for one that this level may not set."""
    name = scope.paths[0]
    if isinstance(value, int):
        if value < 0 and not policy.signed:
            raise HTTPException(412, scope.negative or f"{name} must be 0 or more")
        if value > INT_MAX and not policy.wide:
            raise Invalid(f"{name} has at most 31 bits")
    if value is None:
        return None
    read = value
    if policy.shape is not None:
        if policy.complete:
            value = fields_of(value, policy.shape)
        read = _read(name, value, policy.shape, strict=policy.complete)
    check_numbers(name, read)
    if policy.name in CHECKS:
        CHECKS[policy.name](request, scope, read)
    return msgspec.to_builtins(read) if policy.complete else value


def _read(name: str, value: Any, shape: Any, *, strict: bool = False) -> Any:
    """Raise `Invalid` for a value that would have no effect when it is read."""
    try:
        return msgspec.convert(value, shape, strict=strict)
    except msgspec.ValidationError as error:
        raise Invalid(f"the body is no {name}: {error}") from error


def check_numbers(name: str, value: Any) -> None:
    """Raise `Invalid` for a number that Java's tools cannot read: they would not end."""
    for field in value.__struct_fields__ if isinstance(value, Struct) else ():
        number, most = getattr(value, field), LONG_MAX if field in LONGS else INT_MAX
        if isinstance(number, int) and not -most <= number <= most:
            raise Invalid(f"{field} of {name} has at most {most.bit_length()} bits")


def checked_policies(
    request: AdminRequest, levels: Levels, policies: NamespacePolicies
) -> NamespacePolicies:
    """All policies of a namespace, if it may have them. Older tools send -1 for a number that is
    not decided, and those in Go an empty text; lists are sets.
    """
    changed: dict[str, Any] = {}
    for policy, scope in levels.at("namespace"):
        value = getattr(policies, policy.name)
        if policy.per_cluster and isinstance(value, dict):
            changed[policy.name] = {
                cluster: checked(request, policy, scope, each) for cluster, each in value.items()
            }
        elif value == "" or (value == -1 and not policy.signed):
            changed[policy.name] = scope.initial
        elif scope.paths and value is not None and value != scope.initial:
            read = _read(scope.paths[0], value, policy.kind)
            stored = checked(request, policy, scope, read)
            if isinstance(read, list):
                changed[policy.name] = distinct(read)
            elif policy.complete:
                changed[policy.name] = stored
    for quota in policies.backlog_quotas.values():
        check_numbers("backlogQuota", quota)
    return msgspec.structs.replace(policies, **changed)


def _check_types(_ask: AdminRequest, _scope: Scope, sent: list[str]) -> None:
    if not set(sent) <= set(SUBSCRIPTION_TYPES):
        raise Invalid(f"types of subscriptions are {', '.join(SUBSCRIPTION_TYPES)}")


def _check_replication(request: AdminRequest, scope: Scope, sent: list[str]) -> None:
    if not sent:
        raise HTTPException(412, "ClusterIds should not be null or empty")
    _check_clusters(request, scope, sent)


def _check_clusters(request: AdminRequest, _scope: Scope, sent: list[str]) -> None:
    if set(sent) - {request.broker.settings.cluster}:
        raise not_here("nothing is replicated to other clusters by this server")


def _check_auth_mode(_ask: AdminRequest, _scope: Scope, sent: str) -> None:
    if sent not in AUTH_MODES:
        raise Invalid(f"subscriptionAuthMode is {' or '.join(AUTH_MODES)}")


def _check_group(_ask: AdminRequest, _scope: Scope, sent: str) -> None:
    if not sent.strip():
        raise HTTPException(412, "Anti-affinity group can't be empty")


def _check_message_size(request: AdminRequest, scope: Scope, sent: int) -> None:
    if sent > request.options.message_bytes_max:
        raise HTTPException(412, scope.negative)


def _check_persistence(_ask: AdminRequest, _scope: Scope, sent: Persistence) -> None:
    ensemble, write = sent.bookkeeper_ensemble, sent.bookkeeper_write_quorum
    ack = sent.bookkeeper_ack_quorum
    for name, size in (("Ensemble", ensemble), ("WriteQuorum", write), ("AckQuorum", ack)):
        if not 0 < size <= BOOKIES_MAX:
            text = f"Bookkeeper-{name} must be <= {BOOKIES_MAX} and > 0."
            raise HTTPException(400, text)
    if not isfinite(sent.managed_ledger_max_mark_delete_rate):
        raise Invalid("managedLedgerMaxMarkDeleteRate is a number")
    if not sent.can_be:
        text = f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})"
        raise HTTPException(400, text)


def check_auto_creation(sent: AutoTopicCreation | None) -> None:
    """Check the topic type, but only if topics are created automatically at all."""
    if sent is None or not sent.allowed:
        return
    trouble = ""
    number = sent.default_num_partitions
    if sent.topic_type == "partitioned" and (number or 0) > PARTITIONS_MAX:
        text = f"Number of partitions should be less than or equal to {PARTITIONS_MAX}"
        raise HTTPException(406, text)
    if sent.topic_type not in ("partitioned", "non-partitioned"):
        trouble = f"Unknown topic type [{'null' if sent.topic_type is None else sent.topic_type}]"
    elif sent.topic_type == "non-partitioned" and number is not None:
        trouble = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    elif sent.topic_type == "partitioned" and number is None:
        trouble = "[defaultNumPartitions] cannot be null when the type is partitioned."
    elif sent.topic_type == "partitioned" and number is not None and number < 1:
        trouble = "[defaultNumPartitions] cannot be less than 1 for partition type."
    if trouble:
        begin = "Invalid configuration for autoTopicCreationOverride. the detail is "
        raise HTTPException(412, begin + trouble)


def check_retention(retention: Retention | None, quotas: Mapping[QuotaType, BacklogQuota]) -> None:
    """Retention must exceed the backlog quota, or the quota could never be reached."""
    if retention is None:
        return
    size, minutes = retention.retention_size_in_mb, retention.retention_time_in_minutes
    for name, limit in (("time", minutes), ("size", size)):
        if limit < -1:
            raise HTTPException(400, f"Invalid retention policy: {name} limit must be >= -1")
    if (size == 0) != (minutes == 0):
        raise HTTPException(
            400,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when "
            "one of the limits has a non-zero value. Use the value of -1 instead of 0 to ignore a "
            "specific limit. To disable retention both limits must be set to 0.",
        )
    for quota in quotas.values():
        too_big = size > 0 and quota.limit_size >= size * MEBIBYTE
        too_old = minutes > 0 and quota.limit_time >= minutes * 60
        if too_big or too_old:
            raise HTTPException(412, "the backlog quota must be below what retention keeps")


CHECKS: Final[Mapping[str, Callable[[AdminRequest, Scope, Any], None]]] = {
    "allowed_clusters": _check_clusters,
    "anti_affinity": _check_group,
    "auto_topic_creation": lambda _ask, _scope, sent: check_auto_creation(sent),
    "max_message_size": _check_message_size,
    "persistence": _check_persistence,
    "replication": _check_replication,
    "subscription_auth_mode": _check_auth_mode,
    "subscription_types": _check_types,
}
"""Checks by policy name, beyond those of its type and its declaration."""
