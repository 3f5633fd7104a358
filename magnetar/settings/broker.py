"""Settings of the broker: the values that apply to a topic unless a policy overrides them.

Names and defaults are Pulsar's own (broker.conf), in snake case, so that its documentation applies.
One interval replaces the five at which Pulsar checks for expiry, idle topics and quotas.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

SubscriptionType = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]
SchemaCompatibility = Literal[
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
]


class Broker(Struct, frozen=True):
    """Defaults of policies, and settings that have no policy."""

    cluster_name: Annotated[str, Meta(description="Name of the cluster.", min_length=1)] = (
        "standalone"
    )
    max_message_size: Annotated[
        int,
        # storage takes no larger entries; larger messages come in chunks. Clients discard
        # messages that exceed the limit they were given, so one limit holds for all protocols
        Meta(
            description="Largest message or batch in bytes, also Kafka's; 5242880 in Pulsar.",
            ge=1,
            le=16 * 1024 * 1024,
        ),
    ] = 16 * 1024 * 1024

    allow_auto_topic_creation: Annotated[
        bool, Meta(description="Create a topic when a client names it.")
    ] = True
    allow_auto_topic_creation_type: Annotated[
        Literal["non-partitioned", "partitioned"],
        Meta(description="Kind of an automatically created topic."),
    ] = "non-partitioned"
    default_num_partitions: Annotated[
        int, Meta(description="Partitions of an automatically created partitioned topic.", ge=1)
    ] = 1
    allow_auto_subscription_creation: Annotated[
        bool, Meta(description="Create a subscription when a client names it.")
    ] = True

    delete_inactive_topics_enabled: Annotated[bool, Meta(description="Delete unused topics.")] = (
        True
    )
    delete_inactive_topics_mode: Annotated[
        Literal["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"],
        Meta(description="Which topics without producers count as unused."),
    ] = "delete_when_no_subscriptions"
    delete_inactive_topics_max_inactive_duration_seconds: Annotated[
        int, Meta(description="How long a topic is unused before it is deleted.", ge=0)
    ] = 60
    subscription_expiration_time_minutes: Annotated[
        int, Meta(description="Delete subscriptions unused for this long; 0 for never.", ge=0)
    ] = 0

    default_retention_time_minutes: Annotated[
        int,
        Meta(
            description="How long acknowledged messages are retained; 0 not at all, -1 for ever.",
            ge=-1,
        ),
    ] = 0
    default_retention_size_mb: Annotated[
        int,
        Meta(
            description="Up to which size they are retained; 0 not at all, -1 without limit.", ge=-1
        ),
    ] = 0
    ttl_duration_default_seconds: Annotated[
        int, Meta(description="Older messages count as acknowledged; 0 for never.", ge=0)
    ] = 0

    backlog_quota_default_limit_bytes: Annotated[
        int, Meta(description="Largest backlog of one topic, in bytes; -1 for no limit.", ge=-1)
    ] = -1
    backlog_quota_default_limit_seconds: Annotated[
        int,
        Meta(
            description="Greatest age of the oldest message in a backlog; -1 for no limit.", ge=-1
        ),
    ] = -1
    backlog_quota_default_retention_policy: Annotated[
        Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"],
        Meta(description="What happens when a backlog exceeds its quota."),
    ] = "producer_request_hold"

    max_topics_per_namespace: Annotated[
        int, Meta(description="Maximum number of topics of one namespace; 0 for no limit.", ge=0)
    ] = 0
    max_producers_per_topic: Annotated[
        int, Meta(description="Maximum number of producers of one topic; 0 for no limit.", ge=0)
    ] = 0
    max_consumers_per_topic: Annotated[
        int, Meta(description="Maximum number of consumers of one topic; 0 for no limit.", ge=0)
    ] = 0
    max_consumers_per_subscription: Annotated[
        int,
        Meta(description="Maximum number of consumers of one subscription; 0 for no limit.", ge=0),
    ] = 0
    max_subscriptions_per_topic: Annotated[
        int, Meta(description="Maximum number of subscriptions of one topic; 0 for no limit.", ge=0)
    ] = 0

    max_unacked_messages_per_consumer: Annotated[
        int,
        Meta(
            description="Delivery to a consumer pauses at this many unacknowledged messages; "
            "0 for no limit.",
            ge=0,
        ),
    ] = 50_000
    max_unacked_messages_per_subscription: Annotated[
        int, Meta(description="The same for a whole subscription; 0 for no limit.", ge=0)
    ] = 200_000
    max_delayed_messages_per_subscription: Annotated[
        int,
        Meta(
            description="Of how many delayed entries a subscription keeps the times in memory; all "
            "together keep a million. Those that are due last are read again when they nearly are.",
            ge=1,
            le=100_000_000,
        ),
    ] = 500_000
    schema_compatibility_strategy: Annotated[
        SchemaCompatibility,
        Meta(description="Which schema may follow the schemas that a topic has."),
    ] = "FULL"
    is_schema_validation_enforced: Annotated[
        bool,
        Meta(description="Refuse producers without a schema on all topics that have one."),
    ] = False
    is_allow_auto_update_schema_enabled: Annotated[
        bool,
        Meta(description="Let clients add schemas; false: only tools may."),
    ] = True
    schema_bytes_max: Annotated[
        int,
        # ZooKeeper takes 1 MB for one node; the rest is for names and the like
        Meta(description="Largest definition of a schema, in bytes.", ge=1024, le=900_000),
    ] = 256 * 1024
    acknowledgment_at_batch_index_level_enabled: Annotated[
        bool, Meta(description="Track the acknowledged messages within a batch.")
    ] = True
    web_socket_service_enabled: Annotated[
        bool, Meta(description="Serve Pulsar's WebSocket API, `/ws/`, on the HTTP ports.")
    ] = True
    exposing_broker_entry_metadata_to_client_enabled: Annotated[
        bool,
        Meta(description="Send each message's index and broker time to clients that request them."),
    ] = False
    transaction_coordinator_enabled: Annotated[
        bool,
        Meta(description="Offer transactions to Pulsar's clients; off by default in Pulsar."),
    ] = True
    dispatcher_pause_on_ack_state_persistent_enabled: Annotated[
        bool,
        Meta(
            description="Have shared subscriptions read no further while they have more single "
            "acknowledgements than are stored."
        ),
    ] = False
    subscription_types_enabled: Annotated[
        tuple[SubscriptionType, ...],
        Meta(description="Subscription types that clients may use.", min_length=1),
    ] = ("Exclusive", "Shared", "Failover", "Key_Shared")
    subscription_key_shared_use_consistent_hashing: Annotated[
        bool,
        Meta(
            description="Key_Shared assigns keys by a hash of consumer names, so that few keys "
            "move; false: a new consumer takes half of the largest range."
        ),
    ] = True
    subscription_key_shared_consistent_hashing_replica_points: Annotated[
        int,
        Meta(
            description="Hash ranges per consumer: more of them distribute keys more evenly.",
            ge=1,
            le=10_000,
        ),
    ] = 100

    deduplication_enabled: Annotated[
        bool, Meta(description="Store a message that a producer sends again only once.")
    ] = False
    deduplication_snapshot_interval_seconds: Annotated[
        int,
        Meta(
            description="Store what deduplication knows when this many seconds have passed since "
            "it was stored last; 0 for never by time.",
            ge=0,
        ),
    ] = 120
    deduplication_entries_interval: Annotated[
        int,
        Meta(
            description="Store it, too, when a topic has got this many entries since, at most once "
            "a second. So much is read again when a topic is loaded after a crash.",
            ge=1,
        ),
    ] = 1_000
    deduplication_producer_inactivity_timeout_minutes: Annotated[
        int,
        Meta(
            description="Forget a producer that has been absent for this long; 0 for never.", ge=0
        ),
    ] = 360

    broker_service_compaction_threshold_in_bytes: Annotated[
        int,
        Meta(
            description="Compact a topic, for consumers that read compacted, when this many bytes "
            "are new; 0 for only when asked to.",
            ge=0,
        ),
    ] = 0
    topic_compaction_retain_null_key: Annotated[
        bool, Meta(description="Compacted topics retain messages without a key.")
    ] = False

    max_publish_rate_per_topic_in_messages: Annotated[
        int,
        Meta(description="Maximum messages a second published to one topic; 0 for no limit.", ge=0),
    ] = 0
    max_publish_rate_per_topic_in_bytes: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    broker_publisher_throttling_max_message_rate: Annotated[
        int,
        Meta(
            description="Maximum messages a second published to all topics together; 0 for no "
            "limit.",
            ge=0,
        ),
    ] = 0
    broker_publisher_throttling_max_byte_rate: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_topic_in_msg: Annotated[
        int,
        Meta(
            description="Maximum messages a second delivered from one topic; 0 for no limit.",
            ge=0,
        ),
    ] = 0
    dispatch_throttling_rate_per_topic_in_byte: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_subscription_in_msg: Annotated[
        int,
        Meta(
            description="Maximum messages a second delivered to one subscription; 0 for no limit.",
            ge=0,
        ),
    ] = 0
    dispatch_throttling_rate_per_subscription_in_byte: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    subscribe_throttling_rate_per_consumer: Annotated[
        int,
        Meta(description="How often one consumer may attach in a period; 0 for no limit.", ge=0),
    ] = 0
    subscribe_rate_period_per_consumer_in_second: Annotated[
        int,
        Meta(description="Length of the period for subscribe_throttling_rate_per_consumer.", ge=1),
    ] = 30

    housekeeping_interval_seconds: Annotated[
        float,
        Meta(description="Time between checks for expiry, quotas and unused topics.", gt=0),
    ] = 30.0
