"""What no type can say of a policy: which values are refused, by Pulsar's names and sentences.

Tools show the sentences, and people search for them; so they are those of Apache's broker
(`NamespacesBase.java`, `PersistentTopicsBase.java`, `AdminResource.java` of 4.2), with its status.
What Apache lets pass and this server could not do is refused in words of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.policies import (
    SUBSCRIPTION_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    QuotaType,
    Retention,
)
from magnetar.core.policy.rates import DispatchRate, PublishRate, SubscribeRate
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import not_here

MEBIBYTE: Final = 1024 * 1024
INT_MAX: Final = (1 << 31) - 1
WIDE: Final = frozenset(["compactionThreshold", "offloadThreshold", "offloadThresholdInSeconds"])
"""Numbers of 64 bits; all others have 32 in Java."""
SIGNED: Final = frozenset(["offloadThreshold", "offloadThresholdInSeconds", "offloadDeletionLagMs"])
"""Numbers that may be negative: they turn something off."""
UNACKED: Final = "maxUnackedNum must be 0 or more"

NEGATIVE: Final[Mapping[str, str]] = {
    "messageTTL": "Invalid value for message TTL, message TTL must >= 0",
    "subscriptionExpirationTime": "Invalid value for subscription expiration time",
    "deduplicationSnapshotInterval": "interval must be greater than or equal to 0",
}
"""What Apache says of a number below 0, by the last part of the path; else `NAME must be ...`."""
NEGATIVE_OF_TOPIC: Final[Mapping[str, str]] = {
    "messageTTL": "Invalid value for message TTL",
    "maxConsumersPerSubscription": "Invalid value for maxConsumersPerSubscription",
    "compactionThreshold": "Invalid value for compactionThreshold",
    "maxUnackedMessagesOnConsumer": UNACKED,
    "maxUnackedMessagesOnSubscription": UNACKED,
    "deduplicationSnapshotInterval": "interval must be 0 or more",
    "maxMessageSize": (
        "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than "
        "that in the broker-level"
    ),
}
"""The same, where it is a topic that decides."""

RATES: Final[Mapping[str, type[Struct]]] = {
    "publishRate": PublishRate,
    "dispatchRate": DispatchRate,
    "subscriptionDispatchRate": DispatchRate,
    "replicatorDispatchRate": DispatchRate,
    "subscribeRate": SubscribeRate,
}
"""Kept as they come, but not if they could not be read as what they are called."""


class Persistence(Struct, frozen=True, rename="camel"):
    """How entries are spread over bookies."""

    bookkeeper_ensemble: int = 1
    bookkeeper_write_quorum: int = 1
    bookkeeper_ack_quorum: int = 1
    managed_ledger_max_mark_delete_rate: float = 0.0


def check(ask: Ask, name: str, value: Any, negative: Mapping[str, str] = NEGATIVE) -> None:
    """Refuse what a namespace may not decide; `name` is the last part of the path."""
    if isinstance(value, int):
        if value < 0 and name not in SIGNED:
            raise HTTPException(412, negative.get(name, f"{name} must be 0 or more"))
        if value > INT_MAX and name not in WIDE:
            raise Invalid(f"{name} has at most 31 bits")
    if name == "subscriptionTypesEnabled" and not set(value or ()) <= set(SUBSCRIPTION_TYPES):
        raise Invalid(f"types of subscriptions are {', '.join(SUBSCRIPTION_TYPES)}")
    if name == "replication" and set(value or ()) - {ask.broker.settings.cluster}:
        raise not_here("nothing is replicated to other clusters by this server")
    if name in RATES and value is not None:
        _read(name, value, RATES[name])
    if name == "persistence" and value is not None:
        _check_persistence(_read(name, value, Persistence))
    if isinstance(value, AutoTopicCreation):
        check_auto_creation(value)


def check_of_topic(ask: Ask, name: str, value: Any) -> None:
    """Refuse what a topic may not decide."""
    check(ask, name, value, NEGATIVE_OF_TOPIC)
    if name == "maxMessageSize" and value is not None and value > ask.options.message_bytes_max:
        raise HTTPException(412, NEGATIVE_OF_TOPIC[name])


def _read(name: str, value: Any, kind: type[Struct]) -> Any:
    """`Invalid` for what would decide nothing when it is looked at."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(f"the body is no {name}: {error}") from error


def _check_persistence(sent: Persistence) -> None:
    ensemble, write = sent.bookkeeper_ensemble, sent.bookkeeper_write_quorum
    ack = sent.bookkeeper_ack_quorum
    if not ensemble >= write >= ack > 0:
        text = f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})"
        raise HTTPException(400, text)


def check_auto_creation(sent: AutoTopicCreation | None) -> None:
    """Only where topics are to be created does it matter as what."""
    if sent is None or not sent.allowed:
        return
    trouble = ""
    number = sent.default_num_partitions
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
    """What is retained must be more than what may wait, or the quota could never be reached."""
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
