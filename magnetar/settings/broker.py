"""Settings of the broker: what holds for a topic where no policy says otherwise.

Names and defaults are Pulsar's own (broker.conf), in snake case, so that its documentation applies.
One interval stands for the five at which Pulsar looks for what is expired, idle or over quota.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

SubscriptionType = Literal["Exclusive", "Shared", "Failover", "Key_Shared"]


class Broker(Struct, frozen=True):
    """Defaults of policies, and the switches that have no policy."""

    cluster_name: Annotated[str, Meta(description="Name of the cluster.", min_length=1)] = (
        "standalone"
    )
    max_message_size: Annotated[
        int,
        # storage takes no larger entries; larger messages come in chunks. Clients leave out what is
        # larger than they are allowed, so it is the limit of all protocols
        Meta(
            description="Bytes of one message or batch, also of Kafka's; 5242880 in Pulsar.",
            ge=1,
            le=16 * 1024 * 1024,
        ),
    ] = 16 * 1024 * 1024

    allow_auto_topic_creation: Annotated[
        bool, Meta(description="Topics come into being when a client names them.")
    ] = True
    allow_auto_topic_creation_type: Annotated[
        Literal["non-partitioned", "partitioned"], Meta(description="And are then of this kind.")
    ] = "non-partitioned"
    default_num_partitions: Annotated[
        int, Meta(description="And then, if partitioned, of so many partitions.", ge=1)
    ] = 1
    allow_auto_subscription_creation: Annotated[
        bool, Meta(description="Subscriptions come into being when a client names them.")
    ] = True

    delete_inactive_topics_enabled: Annotated[
        bool, Meta(description="Topics that nobody uses are deleted.")
    ] = True
    delete_inactive_topics_mode: Annotated[
        Literal["delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"],
        Meta(description="What counts as use, besides a producer."),
    ] = "delete_when_no_subscriptions"
    delete_inactive_topics_max_inactive_duration_seconds: Annotated[
        int, Meta(description="Unused for so long before it goes.", ge=0)
    ] = 60
    subscription_expiration_time_minutes: Annotated[
        int, Meta(description="Subscriptions unused for so long are deleted; 0 for never.", ge=0)
    ] = 0

    default_retention_time_minutes: Annotated[
        int, Meta(description="Acknowledged messages stay so long; 0 not, -1 for ever.", ge=-1)
    ] = 0
    default_retention_size_mb: Annotated[
        int, Meta(description="And up to this size; 0 not, -1 without limit.", ge=-1)
    ] = 0
    ttl_duration_default_seconds: Annotated[
        int, Meta(description="Messages not acknowledged in time count as such; 0 for never.", ge=0)
    ] = 0

    backlog_quota_default_limit_bytes: Annotated[
        int, Meta(description="Backlog of one topic in bytes; -1 for no limit.", ge=-1)
    ] = -1
    backlog_quota_default_limit_seconds: Annotated[
        int, Meta(description="Age of its oldest message; -1 for no limit.", ge=-1)
    ] = -1
    backlog_quota_default_retention_policy: Annotated[
        Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"],
        Meta(description="What happens beyond the quota."),
    ] = "producer_request_hold"

    max_topics_per_namespace: Annotated[
        int, Meta(description="Topics of one namespace; 0 for no limit.", ge=0)
    ] = 0
    max_producers_per_topic: Annotated[
        int, Meta(description="Producers of one topic; 0 for no limit.", ge=0)
    ] = 0
    max_consumers_per_topic: Annotated[
        int, Meta(description="Consumers of one topic; 0 for no limit.", ge=0)
    ] = 0
    max_consumers_per_subscription: Annotated[
        int, Meta(description="Consumers of one subscription; 0 for no limit.", ge=0)
    ] = 0
    max_subscriptions_per_topic: Annotated[
        int, Meta(description="Subscriptions of one topic; 0 for no limit.", ge=0)
    ] = 0

    max_unacked_messages_per_consumer: Annotated[
        int, Meta(description="Delivered, not acknowledged: beyond it, wait; 0 off.", ge=0)
    ] = 50_000
    max_unacked_messages_per_subscription: Annotated[
        int, Meta(description="The same for a whole subscription; 0 off.", ge=0)
    ] = 200_000
    max_delayed_messages_per_subscription: Annotated[
        int,
        Meta(
            description="Entries kept in mind until they are due: beyond it, read no further.",
            ge=1,
            le=100_000_000,
        ),
    ] = 500_000
    acknowledgment_at_batch_index_level_enabled: Annotated[
        bool, Meta(description="Remember which messages of a batch are acknowledged.")
    ] = True
    exposing_broker_entry_metadata_to_client_enabled: Annotated[
        bool, Meta(description="Clients that ask for it get each message's index and broker time.")
    ] = False
    subscription_types_enabled: Annotated[
        tuple[SubscriptionType, ...], Meta(description="Types that clients may use.", min_length=1)
    ] = ("Exclusive", "Shared", "Failover", "Key_Shared")
    subscription_key_shared_use_consistent_hashing: Annotated[
        bool,
        Meta(
            description="Key_Shared divides keys by the names of consumers, so that few change "
            "hands; false: a newcomer takes half of the largest range."
        ),
    ] = True
    subscription_key_shared_consistent_hashing_replica_points: Annotated[
        int,
        Meta(description="So many ranges for each consumer: more are more even.", ge=1, le=10_000),
    ] = 100

    deduplication_enabled: Annotated[
        bool, Meta(description="Messages that a producer sends again are stored once.")
    ] = False
    deduplication_producer_inactivity_timeout_minutes: Annotated[
        int, Meta(description="A producer away for so long is forgotten; 0 for never.", ge=0)
    ] = 360

    max_publish_rate_per_topic_in_messages: Annotated[
        int, Meta(description="Messages a second into one topic; 0 for no limit.", ge=0)
    ] = 0
    max_publish_rate_per_topic_in_bytes: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    broker_publisher_throttling_max_message_rate: Annotated[
        int, Meta(description="Messages a second into all topics; 0 for no limit.", ge=0)
    ] = 0
    broker_publisher_throttling_max_byte_rate: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_topic_in_msg: Annotated[
        int, Meta(description="Messages a second out of one topic; 0 for no limit.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_topic_in_byte: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_subscription_in_msg: Annotated[
        int, Meta(description="Messages a second to one subscription; 0 for no limit.", ge=0)
    ] = 0
    dispatch_throttling_rate_per_subscription_in_byte: Annotated[
        int, Meta(description="The same in bytes.", ge=0)
    ] = 0
    subscribe_throttling_rate_per_consumer: Annotated[
        int, Meta(description="How often one consumer may attach in a period; 0 for any.", ge=0)
    ] = 0
    subscribe_rate_period_per_consumer_in_second: Annotated[
        int, Meta(description="That period.", ge=1)
    ] = 30

    housekeeping_interval_seconds: Annotated[
        float,
        Meta(description="Time between looks for what is expired, over quota or unused.", gt=0),
    ] = 30.0
