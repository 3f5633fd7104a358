"""Policies: what namespaces and topics may decide, and what holds where they do not. Pure.

The JSON names are Pulsar's own, mixed styles and all, because admin tools read and write them. None
means "not decided here"; `effective` answers every question by topic, then namespace, then broker.

Invariant: decoding takes what client suites send (an empty body, `null`, unknown fields, names of
old); a value of the wrong type is `Invalid`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.throttle import UNLIMITED, RateLimit
from magnetar.core.policy.rates import RATES, decided

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

Kind = TypeVar("Kind")

QuotaPolicy = Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"]
QuotaType = Literal["destination_storage", "message_age"]


class Retention(Struct, frozen=True, rename="camel"):
    """How long acknowledged messages stay; -1 is for ever, 0 not at all."""

    retention_time_in_minutes: int = 0
    retention_size_in_mb: int = field(default=0, name="retentionSizeInMB")


class LogLimits(Struct, frozen=True, rename="camel"):
    """Where a log ends at its old end, whether everybody has read that or not; -1 for nowhere."""

    age_ms: int = -1
    size_bytes: int = -1


class LedgerLimits(Struct, frozen=True, rename="camel"):
    """When the next ledger of a log begins; -1 where that is not decided."""

    size_bytes: int = -1
    age_ms: int = -1


class Compaction(Struct, frozen=True, rename="camel"):
    """How a log is compacted within: of the messages with a key it keeps the last one."""

    dirty_ratio: float = 0.5
    """So much of what may be compacted has to be new."""
    min_lag_ms: int = 0
    """What is younger stays."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone stays."""
    max_lag_ms: int = -1
    """What is older is compacted, however little is new; -1 where nothing has to be."""


class BacklogQuota(Struct, frozen=True, rename="camel"):
    """How much may wait to be acknowledged, and what happens beyond."""

    limit_size: int = -1
    """Bytes; -1 for no limit."""
    limit_time: int = -1
    """Seconds; -1 for no limit."""
    policy: QuotaPolicy = "producer_request_hold"


class AutoTopicCreation(Struct, frozen=True, rename="camel"):
    """Whether a topic comes into being by being asked for."""

    allow_auto_topic_creation: bool = True
    topic_type: str | None = "non-partitioned"
    """Or `partitioned`; where none come into being tools may leave it empty."""
    default_num_partitions: int | None = None

    @property
    def allowed(self) -> bool:
        return self.allow_auto_topic_creation

    @property
    def partitions(self) -> int:
        """0 for a topic without partitions."""
        if self.topic_type == "partitioned":
            return self.default_num_partitions or 1
        return 0


class AutoSubscriptionCreation(Struct, frozen=True, rename="camel"):
    """Whether a subscription comes into being by being asked for."""

    allow_auto_subscription_creation: bool = True


class InactiveTopics(Struct, frozen=True, rename="camel"):
    """When a topic that nobody uses is deleted."""

    inactive_topic_delete_mode: Literal[
        "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"
    ] = "delete_when_no_subscriptions"
    max_inactive_duration_seconds: int = 60
    delete_while_inactive: bool = True


class DelayedDelivery(Struct, frozen=True, rename="camel"):
    """Whether messages may ask to be delivered later."""

    tick_time: int = 1000
    active: bool = True
    max_delivery_delay_in_millis: int = 0


class AuthPolicies(Struct, frozen=True):
    """Who may do what; kept for the day authorisation is switched on."""

    namespace_auth: dict[str, list[str]] = {}
    topic_auth: dict[str, dict[str, list[str]]] = field(
        default_factory=dict, name="destination_auth"
    )
    subscription_auth: dict[str, list[str]] = field(
        default_factory=dict, name="subscription_auth_roles"
    )


class Bundles(Struct, frozen=True, rename="camel"):
    """How the namespace's hash space is cut."""

    boundaries: list[str] = field(default_factory=lambda: ["0x00000000", "0xffffffff"])
    num_bundles: int = 1


class TopicPolicies(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one topic decides for itself."""

    message_ttl: int | None = field(default=None, name="messageTTLInSeconds")
    retention: Retention | None = field(default=None, name="retentionPolicies")
    backlog_quotas: dict[QuotaType, BacklogQuota] = field(
        default_factory=dict, name="backLogQuotaMap"
    )
    max_producers: int | None = field(default=None, name="maxProducerPerTopic")
    max_consumers: int | None = field(default=None, name="maxConsumerPerTopic")
    max_consumers_per_subscription: int | None = None
    max_subscriptions: int | None = field(default=None, name="maxSubscriptionsPerTopic")
    max_unacked_on_consumer: int | None = field(default=None, name="maxUnackedMessagesOnConsumer")
    max_unacked_on_subscription: int | None = field(
        default=None, name="maxUnackedMessagesOnSubscription"
    )
    max_message_size: int | None = None
    inactive_topics: InactiveTopics | None = field(default=None, name="inactiveTopicPolicies")
    delayed_delivery: DelayedDelivery | None = field(default=None, name="delayedDeliveryPolicies")
    auto_subscription_creation: AutoSubscriptionCreation | None = field(
        default=None, name="autoSubscriptionCreationOverride"
    )
    subscription_types: list[str] | None = field(default=None, name="subscriptionTypesEnabled")
    deduplication: bool | None = field(default=None, name="deduplicationEnabled")
    compaction_threshold: int | None = None
    log_limits: LogLimits | None = None
    ledger_limits: LedgerLimits | None = None
    compaction: Compaction | None = None
    configs: dict[str, str] = {}
    """What else a front has been told of the topic, by that front's names."""
    extra: dict[str, Any] = {}
    """Policies that are stored as tools send them, by their REST name: rates have an effect."""


class NamespacePolicies(Struct, frozen=True, kw_only=True):
    """What one namespace decides; written as `/admin/v2/namespaces/T/N` shows it."""

    auth_policies: AuthPolicies = AuthPolicies()
    replication_clusters: list[str] = []
    bundles: Bundles = Bundles()
    backlog_quota_map: dict[QuotaType, BacklogQuota] = {}
    retention_policies: Retention | None = None
    message_ttl_in_seconds: int | None = None
    encryption_required: bool = False
    deduplication: bool | None = field(default=None, name="deduplicationEnabled")
    auto_topic_creation: AutoTopicCreation | None = field(
        default=None, name="autoTopicCreationOverride"
    )
    auto_subscription_creation: AutoSubscriptionCreation | None = field(
        default=None, name="autoSubscriptionCreationOverride"
    )
    max_producers_per_topic: int | None = None
    max_consumers_per_topic: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions_per_topic: int | None = None
    max_topics_per_namespace: int | None = None
    max_unacked_messages_per_consumer: int | None = None
    max_unacked_messages_per_subscription: int | None = None
    compaction_threshold: int | None = None
    subscription_expiration_time_minutes: int | None = None
    inactive_topic_policies: InactiveTopics | None = None
    delayed_delivery_policies: DelayedDelivery | None = None
    subscription_types_enabled: list[str] = []
    properties: dict[str, str] = {}
    extra: dict[str, Any] = {}
    """Policies that are stored as tools send them, by their field's name: rates have an effect."""


class BrokerDefaults(Struct, frozen=True, kw_only=True):
    """What holds where nobody decided; names and values follow Pulsar's broker.conf."""

    message_ttl_seconds: int = 0
    retention: Retention = Retention()
    backlog_quotas: dict[QuotaType, BacklogQuota] = {}
    auto_topic_creation: AutoTopicCreation = AutoTopicCreation()
    auto_subscription_creation: bool = True
    inactive_topics: InactiveTopics = InactiveTopics()
    delayed_delivery: DelayedDelivery = DelayedDelivery()
    deduplication: bool = False
    deduplication_inactivity_minutes: int = 360
    """Of a producer, until it is forgotten; 0 for never."""
    max_producers_per_topic: int = 0
    max_consumers_per_topic: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions_per_topic: int = 0
    max_topics_per_namespace: int = 0
    max_unacked_messages_per_consumer: int = 50_000
    max_unacked_messages_per_subscription: int = 200_000
    max_delayed_per_subscription: int = 500_000
    subscription_expiration_minutes: int = 0
    subscription_types: tuple[str, ...] = SUBSCRIPTION_TYPES
    compaction_threshold: int = 0
    max_message_size: int = 0
    """Bytes; 0 where only the protocol's own limit holds."""
    publish_rate: RateLimit = UNLIMITED
    dispatch_rate: RateLimit = UNLIMITED
    """Of a topic, all subscriptions together."""
    subscription_dispatch_rate: RateLimit = UNLIMITED
    subscribe_rate: RateLimit = RateLimit(period_seconds=30)
    """Of each consumer."""


class Effective(Struct, frozen=True, kw_only=True):
    """What holds for one topic, all things considered."""

    message_ttl_seconds: int
    retention: Retention
    backlog_quotas: dict[QuotaType, BacklogQuota]
    auto_topic_creation: AutoTopicCreation
    auto_subscription_creation: bool
    inactive_topics: InactiveTopics
    delayed_delivery: DelayedDelivery
    deduplication: bool
    deduplication_inactivity_minutes: int
    encryption_required: bool
    max_producers_per_topic: int
    max_consumers_per_topic: int
    max_consumers_per_subscription: int
    max_subscriptions_per_topic: int
    max_topics_per_namespace: int
    max_unacked_per_consumer: int
    max_unacked_per_subscription: int
    max_delayed_per_subscription: int
    subscription_expiration_minutes: int
    subscription_types: tuple[str, ...]
    compaction_threshold: int
    max_message_size: int
    publish_rate: RateLimit
    dispatch_rate: RateLimit
    subscription_dispatch_rate: RateLimit
    subscribe_rate: RateLimit
    log_limits: LogLimits | None = None
    ledger_limits: LedgerLimits | None = None
    compaction: Compaction | None = None
    """None where the log is not compacted within; what Pulsar's tools ask for is another thing."""
    configs: dict[str, str] = {}

    @property
    def checks_messages(self) -> bool:
        """Whether messages have to be looked at one by one before they are stored."""
        return self.max_message_size > 0 or self.delayed_delivery.max_delivery_delay_in_millis > 0


_SOURCES: Final[dict[str, tuple[str | None, str | None, str]]] = {
    "message_ttl_seconds": ("message_ttl", "message_ttl_in_seconds", "message_ttl_seconds"),
    "retention": ("retention", "retention_policies", "retention"),
    "auto_topic_creation": (None, "auto_topic_creation", "auto_topic_creation"),
    "inactive_topics": ("inactive_topics", "inactive_topic_policies", "inactive_topics"),
    "delayed_delivery": ("delayed_delivery", "delayed_delivery_policies", "delayed_delivery"),
    "deduplication": ("deduplication", "deduplication", "deduplication"),
    "deduplication_inactivity_minutes": (None, None, "deduplication_inactivity_minutes"),
    "max_producers_per_topic": (
        "max_producers", "max_producers_per_topic", "max_producers_per_topic",
    ),
    "max_consumers_per_topic": (
        "max_consumers", "max_consumers_per_topic", "max_consumers_per_topic",
    ),
    "max_consumers_per_subscription": (
        "max_consumers_per_subscription",
        "max_consumers_per_subscription",
        "max_consumers_per_subscription",
    ),
    "max_subscriptions_per_topic": (
        "max_subscriptions", "max_subscriptions_per_topic", "max_subscriptions_per_topic",
    ),
    "max_topics_per_namespace": (None, "max_topics_per_namespace", "max_topics_per_namespace"),
    "max_unacked_per_consumer": (
        "max_unacked_on_consumer",
        "max_unacked_messages_per_consumer",
        "max_unacked_messages_per_consumer",
    ),
    "max_unacked_per_subscription": (
        "max_unacked_on_subscription",
        "max_unacked_messages_per_subscription",
        "max_unacked_messages_per_subscription",
    ),
    "max_delayed_per_subscription": (None, None, "max_delayed_per_subscription"),
    "subscription_expiration_minutes": (
        None, "subscription_expiration_time_minutes", "subscription_expiration_minutes",
    ),
    "max_message_size": ("max_message_size", None, "max_message_size"),
    "compaction_threshold": (
        "compaction_threshold", "compaction_threshold", "compaction_threshold",
    ),
}  # fmt: skip
"""Where the answer to a plain question is written: by the topic, the namespace, the broker."""


def effective(
    broker: BrokerDefaults,
    namespace: NamespacePolicies,
    topic: TopicPolicies,
    cluster: str = "standalone",
) -> Effective:
    """Every question answered by the nearest that has an answer."""
    answers: dict[str, Any] = {}
    for question, names in _SOURCES.items():
        for decider, name in zip((topic, namespace, broker), names, strict=True):
            if name is not None and (answer := getattr(decider, name)) is not None:
                answers[question] = answer
                break
    for question in RATES:
        rate = decided(question, topic.extra, namespace.extra, cluster)
        answers[question] = getattr(broker, question) if rate is None else rate
    subscriptions = topic.auto_subscription_creation or namespace.auto_subscription_creation
    types = topic.subscription_types or namespace.subscription_types_enabled
    return Effective(
        backlog_quotas={
            **broker.backlog_quotas,
            **namespace.backlog_quota_map,
            **topic.backlog_quotas,
        },
        auto_subscription_creation=(
            broker.auto_subscription_creation
            if subscriptions is None
            else subscriptions.allow_auto_subscription_creation
        ),
        encryption_required=namespace.encryption_required,
        subscription_types=tuple(types) if types else broker.subscription_types,
        log_limits=topic.log_limits,
        ledger_limits=topic.ledger_limits,
        compaction=topic.compaction,
        configs=topic.configs,
        **answers,
    )


def decode(body: bytes, kind: type[Kind]) -> Kind:
    """Read policies; an empty body or `null` decides nothing, nor does a `null` within."""
    if not body.strip():
        return kind()
    try:
        # as lenient as Jackson: numbers and truth values may come as strings
        return msgspec.convert(_decided(msgspec.json.decode(body)), kind, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"not a policy: {error}") from error


def _decided(value: Any) -> Any:
    """Without what is null, and with the names of today."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    decided = {
        key: _decided(inner) if isinstance(inner, dict) else inner
        for key, inner in value.items()
        if inner is not None
    }
    # until 2.8 a backlog quota knew sizes only, and tools still send them so
    if "policy" in decided and "limit" in decided:
        decided.setdefault("limitSize", decided["limit"])
    return decided


def encode(policies: Struct) -> bytes:
    """As JSON, in Pulsar's names."""
    return msgspec.json.encode(policies)
