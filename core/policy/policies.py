"""The declarations of all policies: names, levels, effects. Pure.

`Effective` declares those that have an effect, one field each; the field's default is the broker's.
`stored.py` declares those without one, which are stored for tools. A new policy is one declaration
here and the code of its effect: records, REST and `docs/admin.md` follow from it
(`declaration.py`). If operators configure its default, it names settings, which
`magnetar/settings/broker.py` declares.

The code that publishes and dispatches reads the fields of `Effective`, and nothing else.

Invariant: decoding takes what client suites send (an empty body, `null`, unknown fields, old
names); a value of the wrong type is `Invalid`.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import Struct

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.throttle import UNLIMITED, RateLimit
from magnetar.core.policy import rates
from magnetar.core.policy.declaration import NamespaceRecord, Policy, Scope, levels_of
from magnetar.core.policy.persistence import Persistence, persistence_of, show_persistence
from magnetar.core.policy.rates import SubscriptionPolicies
from magnetar.core.policy.stored import STORED
from magnetar.core.policy.values import (
    SUBSCRIPTION_TYPES,
    AutoSubscriptionCreation,
    AutoTopicCreation,
    BacklogQuota,
    Compaction,
    DelayedDelivery,
    InactiveTopics,
    LedgerLimits,
    LogLimits,
    QuotaType,
    Retention,
    SchemaStrategy,
    older_schema_strategy,
    schema_strategy,
)

Kind = TypeVar("Kind")
Broker = TypeVar("Broker", bound="Effective")

UNACKED: Final = "maxUnackedNum must be 0 or more"
TOO_LARGE: Final = (
    "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that "
    "in the broker-level"
)


def rate(shape: type[Struct], **more: Any) -> Policy:
    """A rate limit: namespaces store it for each cluster."""
    return Policy(
        shape=shape, complete=True, kind=dict[str, Any], loose=True, per_cluster=True, **more
    )


# fmt: off
class Effective(Struct, frozen=True, kw_only=True):
    """The values in force for one topic; as made without arguments, Pulsar's own defaults."""

    STORED: ClassVar[tuple[Policy, ...]] = STORED
    """Policies without an effect, which have no value here."""

    message_ttl_seconds: Annotated[int, Policy(
        "Older messages count as acknowledged.",
        Scope("messageTTLInSeconds", "messageTTL", negative="Invalid value for message TTL"),
        Scope("message_ttl_in_seconds", "messageTTL",
              negative="Invalid value for message TTL, message TTL must >= 0"),
        ("ttl_duration_default_seconds",),
    )] = 0
    retention: Annotated[Retention, Policy(
        "Acknowledged messages are retained for a time, up to a size.",
        Scope("retentionPolicies", "retention"), Scope("retention_policies", "retention"),
        ("default_retention_time_minutes", "default_retention_size_mb"), Retention,
    )] = Retention()
    backlog_quotas: Annotated[dict[QuotaType, BacklogQuota], Policy(
        "Limits the unacknowledged backlog, by size and by age.",
        Scope("backLogQuotaMap", None, {}),  # its paths: backlogQuota and backlogQuotaMap
        Scope("backlog_quota_map", None, {}),
        ("backlog_quota_default_limit_bytes",
         "backlog_quota_default_limit_seconds",
         "backlog_quota_default_retention_policy"), BacklogQuota.by_type, merged=True,
    )] = {}
    auto_topic_creation: Annotated[AutoTopicCreation, Policy(
        "Creates a topic when a client names it.",
        None, Scope("autoTopicCreationOverride", "autoTopicCreation"),
        ("allow_auto_topic_creation", "allow_auto_topic_creation_type", "default_num_partitions"),
        AutoTopicCreation.of_type,
    )] = AutoTopicCreation()
    auto_subscription_creation: Annotated[bool, Policy(
        "Creates a subscription when a client names it.",
        Scope("autoSubscriptionCreationOverride", "autoSubscriptionCreation"),
        Scope("autoSubscriptionCreationOverride", "autoSubscriptionCreation"),
        ("allow_auto_subscription_creation",),
        kind=AutoSubscriptionCreation,
        read=lambda value: value.allow_auto_subscription_creation,
        show=AutoSubscriptionCreation,
    )] = True
    inactive_topics: Annotated[InactiveTopics, Policy(
        "Deletes unused topics.",
        Scope("inactiveTopicPolicies"), Scope("inactive_topic_policies", "inactiveTopicPolicies"),
        ("delete_inactive_topics_mode",
         "delete_inactive_topics_max_inactive_duration_seconds",
         "delete_inactive_topics_enabled"), InactiveTopics,
    )] = InactiveTopics()
    delayed_delivery: Annotated[DelayedDelivery, Policy(
        "Allows delayed delivery, up to a maximum delay.",
        Scope("delayedDeliveryPolicies", "delayedDelivery"),
        Scope("delayed_delivery_policies", "delayedDelivery"),
    )] = DelayedDelivery()
    deduplication: Annotated[bool, Policy(
        "Stores a message that a producer sends again only once.",
        Scope("deduplicationEnabled", ("deduplicationEnabled", "deduplication")),
        Scope("deduplicationEnabled", "deduplication"), ("deduplication_enabled",),
    )] = False
    deduplication_snapshot_interval: Annotated[int, Policy(
        "Stores what deduplication knows, when this many seconds have passed since it was stored "
        "last; 0 for never by time.",
        Scope("deduplicationSnapshotInterval", negative="interval must be 0 or more"),
        Scope("deduplicationSnapshotIntervalSeconds", "deduplicationSnapshotInterval",
              negative="interval must be greater than or equal to 0"),
        ("deduplication_snapshot_interval_seconds",),
    )] = 120
    deduplication_entries_interval: Annotated[int, Policy(
        "Stores it, too, when this many entries were stored since, at most once a second.",
        settings=("deduplication_entries_interval",),
    )] = 1_000
    deduplication_inactivity_minutes: Annotated[int, Policy(
        "Forgets a producer absent for this long; 0 for never.",
        settings=("deduplication_producer_inactivity_timeout_minutes",),
    )] = 360
    encryption_required: Annotated[bool, Policy(
        "Refuses producers that do not encrypt.",
        None, Scope("encryption_required", "encryptionRequired", initial=False),
    )] = False
    max_producers_per_topic: Annotated[int, Policy(
        "Limits the producers of a topic; 0 for no limit, here and below.",
        Scope("maxProducerPerTopic", "maxProducers"),
        Scope("max_producers_per_topic", "maxProducersPerTopic"), ("max_producers_per_topic",),
    )] = 0
    max_consumers_per_topic: Annotated[int, Policy(
        "Limits the consumers of a topic.",
        Scope("maxConsumerPerTopic", "maxConsumers"),
        Scope("max_consumers_per_topic", "maxConsumersPerTopic"), ("max_consumers_per_topic",),
    )] = 0
    max_consumers_per_subscription: Annotated[int, Policy(
        "Limits the consumers of a subscription.",
        Scope("maxConsumersPerSubscription",
              negative="Invalid value for maxConsumersPerSubscription"),
        Scope("max_consumers_per_subscription", "maxConsumersPerSubscription"),
        ("max_consumers_per_subscription",),
    )] = 0
    max_subscriptions_per_topic: Annotated[int, Policy(
        "Limits the subscriptions of a topic.",
        Scope("maxSubscriptionsPerTopic"),
        Scope("max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
        ("max_subscriptions_per_topic",),
    )] = 0
    max_topics_per_namespace: Annotated[int, Policy(
        "Limits the topics of a namespace.",
        None, Scope("max_topics_per_namespace", "maxTopicsPerNamespace", unset=0),
        ("max_topics_per_namespace",),
    )] = 0
    max_unacked_per_consumer: Annotated[int, Policy(
        "Delivery to a consumer pauses at this many unacknowledged messages.",
        Scope("maxUnackedMessagesOnConsumer", negative=UNACKED),
        Scope("max_unacked_messages_per_consumer", "maxUnackedMessagesPerConsumer"),
        ("max_unacked_messages_per_consumer",),
    )] = 50_000
    max_unacked_per_subscription: Annotated[int, Policy(
        "Delivery of a subscription pauses at this many unacknowledged messages.",
        Scope("maxUnackedMessagesOnSubscription", negative=UNACKED),
        Scope("max_unacked_messages_per_subscription", "maxUnackedMessagesPerSubscription"),
        ("max_unacked_messages_per_subscription",),
    )] = 200_000
    max_delayed_per_subscription: Annotated[int, Policy(
        "A subscription keeps the times of this many delayed entries, all together a million.",
        settings=("max_delayed_messages_per_subscription",),
    )] = 500_000
    pause_on_ack_state: Annotated[bool, Policy(
        "A shared subscription reads no further while it has more single acknowledgements than are "
        "stored (10,000 ranges), so that a crash delivers none of them again.",
        Scope("dispatcherPauseOnAckStatePersistent", unset=False),
        Scope("dispatcherPauseOnAckStatePersistentEnabled",
              "dispatcherPauseOnAckStatePersistent", unset=False),
        ("dispatcher_pause_on_ack_state_persistent_enabled",), absent=True,
    )] = False
    subscription_expiration_minutes: Annotated[int, Policy(
        "Deletes subscriptions unused for this long; 0 for never.",
        Scope("subscriptionExpirationTime",
              negative="Invalid value for subscription expiration time"),
        Scope("subscription_expiration_time_minutes", "subscriptionExpirationTime",
                    negative="Invalid value for subscription expiration time"),
        ("subscription_expiration_time_minutes",),
    )] = 0
    subscription_types: Annotated[tuple[str, ...], Policy(
        "Refuses other subscription types.",
        Scope("subscriptionTypesEnabled"),
        Scope("subscription_types_enabled", "subscriptionTypesEnabled", initial=[]),
        ("subscription_types_enabled",),
        kind=list[str], read=lambda value: tuple(value) or None,
    )] = SUBSCRIPTION_TYPES
    compaction_threshold: Annotated[int, Policy(
        "Compacts a topic, beside its log, when this many bytes are new; 0 for only when asked to.",
        Scope("compactionThreshold", negative="Invalid value for compactionThreshold"),
        Scope("compaction_threshold", "compactionThreshold"),
        ("broker_service_compaction_threshold_in_bytes",), wide=True,
    )] = 0
    compaction_retains_keyless: Annotated[bool, Policy(
        "Has that compaction retain messages without a key.",
        settings=("topic_compaction_retain_null_key",),
    )] = False
    max_message_size: Annotated[int, Policy(
        "Refuses larger messages, in bytes; 0 for the protocol's limit only.",
        Scope("maxMessageSize", negative=TOO_LARGE), default_shown=False,
    )] = 0
    publish_rate: Annotated[RateLimit, rate(
        rates.PublishRate,
        effect="Slows the producers of a topic.",
        topic=Scope("publishRate"),
        namespace=Scope("publishMaxMessageRate", "publishRate"),
        settings=("max_publish_rate_per_topic_in_messages", "max_publish_rate_per_topic_in_bytes"),
        configure=RateLimit, read=rates.publish_rate, default_shown=False,
    )] = UNLIMITED
    resource_group: Annotated[str, Policy(
        "Has all topics of the namespaces that are in one group share its rates (the path "
        "`resourcegroup/GROUP`).",
        None, Scope("resource_group_name", None),
    )] = ""
    dispatch_rate: Annotated[RateLimit, rate(
        rates.DispatchRate,
        effect="Slows delivery from a topic to all subscriptions together.",
        topic=Scope("dispatchRate"),
        namespace=Scope("topicDispatchRate", "dispatchRate"),
        settings=("dispatch_throttling_rate_per_topic_in_msg",
                  "dispatch_throttling_rate_per_topic_in_byte"),
        configure=RateLimit, read=rates.dispatch_rate, show=rates.show_dispatch_rate,
    )] = UNLIMITED
    subscription_dispatch_rate: Annotated[RateLimit, rate(
        rates.DispatchRate,
        effect="Slows delivery to each subscription.",
        topic=Scope("subscriptionDispatchRate"),
        namespace=Scope("subscriptionDispatchRate"),
        settings=("dispatch_throttling_rate_per_subscription_in_msg",
                  "dispatch_throttling_rate_per_subscription_in_byte"),
        configure=RateLimit, read=rates.dispatch_rate, show=rates.show_dispatch_rate,
    )] = UNLIMITED
    subscription_rates: Annotated[dict[str, RateLimit], Policy(
        "Slows delivery to one subscription (the path of the topic, `SUBSCRIPTION/dispatchRate`).",
        Scope("subscriptionPolicies", None, {}),
        kind=dict[str, SubscriptionPolicies], read=rates.of_subscriptions,
    )] = {}
    subscribe_rate: Annotated[RateLimit, rate(
        rates.SubscribeRate,
        effect="Limits how often each consumer attaches in a period.",
        topic=Scope("subscribeRate"),
        namespace=Scope("clusterSubscribeRate", "subscribeRate"),
        settings=("subscribe_throttling_rate_per_consumer",
                  "subscribe_rate_period_per_consumer_in_second"),
        configure=lambda times, period: RateLimit(times, 0, period),
        read=rates.subscribe_rate, show=rates.show_subscribe_rate,
    )] = RateLimit(period_seconds=30)
    schema_compatibility_strategy: Annotated[SchemaStrategy, Policy(
        "Refuses schemas that do not go with those of the topic.",
        Scope("schemaCompatibilityStrategy"),
        Scope("schema_compatibility_strategy", "schemaCompatibilityStrategy", unset="UNDEFINED"),
        ("schema_compatibility_strategy",), SchemaStrategy,
        loose=True, read=schema_strategy, older=older_schema_strategy,
    )] = SchemaStrategy.FULL
    schema_validation_enforced: Annotated[bool, Policy(
        "Refuses producers without a schema, if the topic has one.",
        Scope("schemaValidationEnforced", unset=False),
        Scope("schema_validation_enforced", "schemaValidationEnforced", unset=False),
    )] = False
    schema_validation_everywhere: Annotated[bool, Policy(
        "The same for all topics, whatever they decide.",
        settings=("is_schema_validation_enforced",),
    )] = False
    is_allow_auto_update_schema: Annotated[bool, Policy(
        "Lets producers and consumers add schemas to a topic.",
        None, Scope("is_allow_auto_update_schema", "isAllowAutoUpdateSchema", unset=True),
        ("is_allow_auto_update_schema_enabled",),
    )] = True
    persistence: Annotated[Persistence | None, Policy(
        "On how many bookies of a gateway's cluster new ledgers are (a server of its own has one "
        "copy), and how often in a second a subscription's position is stored at most.",
        Scope("persistence"), Scope("persistence"),
        kind=dict[str, Any], shape=Persistence, complete=True, loose=True,
        read=persistence_of, show=show_persistence,
    )] = None
    log_limits: Annotated[LogLimits | None, Policy(
        "Limits age and size of a log, read or not (`retention.ms`, `retention.bytes`).",
        Scope("logLimits", None),
    )] = None
    ledger_limits: Annotated[LedgerLimits | None, Policy(
        "Decides when a log begins a new ledger (`segment.ms`, `segment.bytes`).",
        Scope("ledgerLimits", None),
    )] = None
    compaction: Annotated[Compaction | None, Policy(
        "Compacts a log in place (`cleanup.policy=compact`).",
        Scope("compaction", None),
    )] = None
    configs: Annotated[dict[str, str], Policy(
        "Topic configs set by another protocol's tools, under that protocol's names.",
        Scope("configs", None, {}),
    )] = {}
    # fmt: on

    def dispatch_rate_of(self, subscription: str) -> RateLimit:
        """The rate of one subscription: its own, or that of all."""
        return self.subscription_rates.get(subscription, self.subscription_dispatch_rate)

    @property
    def checks_messages(self) -> bool:
        """Whether each message must be inspected before it is stored."""
        return self.max_message_size > 0 or self.delayed_delivery.max_delivery_delay_in_millis > 0


if TYPE_CHECKING:

    class TopicPolicies(Struct, frozen=True):
        """The policies of one topic; its fields are the policies of that level, by name."""

        def __init__(self, **decided: Any) -> None: ...
        def __getattr__(self, policy: str) -> Any: ...

    class NamespacePolicies(NamespaceRecord, frozen=True):
        """The policies of one namespace, as `/admin/v2/namespaces/T/N` shows them."""

        def __init__(self, **decided: Any) -> None: ...
        def __getattr__(self, policy: str) -> Any: ...
else:
    TopicPolicies = levels_of(Effective).topic
    NamespacePolicies = levels_of(Effective).namespace


def effective(
    broker: Broker,
    namespace: NamespacePolicies,
    topic: TopicPolicies,
    cluster: str = "standalone",
) -> Broker:
    """Each policy as the nearest level decides it."""
    return levels_of(type(broker)).in_force(broker, namespace, topic, cluster)


def decode(body: bytes, kind: type[Kind], wrong: str = "not a policy") -> Kind:
    """Read a record; an empty body or `null` decides nothing, nor does a `null` within. `wrong` is
    what the error says of one that cannot be read.
    """
    if not body.strip():
        return kind()
    try:
        # as lenient as Jackson: numbers and booleans may come as strings
        return msgspec.convert(_decided(msgspec.json.decode(body)), kind, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{wrong}: {error}") from error


def _decided(value: Any) -> Any:
    """The value without nulls, and with today's names."""
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
    # records of versions before 0.5 keep apart what had no field
    if isinstance(extra := decided.get("extra"), dict):
        decided = {**extra, **decided}
    return decided


def encode(policies: Struct) -> bytes:
    """Encode as JSON with Pulsar's names; readers take a missing field for null."""
    fields = msgspec.to_builtins(policies)
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
