"""The values that policies have: JSON objects with Pulsar's own names. Pure.

The names mix styles because admin tools read and write them so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct, field

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

QuotaPolicy = Literal["producer_request_hold", "producer_exception", "consumer_backlog_eviction"]
QuotaType = Literal["destination_storage", "message_age"]
OffloadedReads = Literal["bookkeeper-first", "tiered-storage-first"]


class SchemaStrategy(StrEnum):
    """Which schema may follow those that a topic has. A reader of the new one (BACKWARD), of the
    old one (FORWARD) or of either (FULL) reads what is written with the other; the transitive ones
    ask that for all versions, not for the latest alone.
    """

    UNDEFINED = "UNDEFINED"
    """The next level decides."""
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")


class SchemaAutoUpdate(StrEnum):
    """The same under the names that Pulsar had until 2.10."""

    AUTO_UPDATE_DISABLED = "AutoUpdateDisabled"
    BACKWARD = "Backward"
    FORWARD = "Forward"
    FULL = "Full"
    ALWAYS_COMPATIBLE = "AlwaysCompatible"
    BACKWARD_TRANSITIVE = "BackwardTransitive"
    FORWARD_TRANSITIVE = "ForwardTransitive"
    FULL_TRANSITIVE = "FullTransitive"

    @property
    def strategy(self) -> SchemaStrategy:
        """Its name today."""
        if self is SchemaAutoUpdate.AUTO_UPDATE_DISABLED:
            return SchemaStrategy.ALWAYS_INCOMPATIBLE
        return SchemaStrategy[self.name]


def schema_strategy(value: object) -> SchemaStrategy | None:
    """The strategy that a stored value decides, if it decides any."""
    known = SchemaStrategy.__members__.get(str(value))
    return None if known is SchemaStrategy.UNDEFINED else known


def older_schema_strategy(namespace: object) -> str | None:
    """The strategy that a namespace has decided under its former name."""
    value = getattr(namespace, "schema_auto_update_compatibility_strategy", None)
    known = next((each for each in SchemaAutoUpdate if each.value == value), None)
    return None if known is None else known.strategy.value


class Retention(Struct, frozen=True, rename="camel"):
    """How long acknowledged messages stay; -1 is for ever, 0 not at all."""

    retention_time_in_minutes: int = 0
    retention_size_in_mb: int = field(default=0, name="retentionSizeInMB")


class LogLimits(Struct, frozen=True, rename="camel"):
    """The limits of a log, acknowledged messages or not; -1 for no limit."""

    age_ms: int = -1
    size_bytes: int = -1


class LedgerLimits(Struct, frozen=True, rename="camel"):
    """When the next ledger of a log begins; -1 where the broker decides."""

    size_bytes: int = -1
    age_ms: int = -1


class Compaction(Struct, frozen=True, rename="camel"):
    """How a log is compacted in place: it keeps the last message of each key."""

    dirty_ratio: float = 0.5
    """The share of compactable bytes that must be new before compaction starts."""
    min_lag_ms: int = 0
    """Younger messages stay."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone stays."""
    max_lag_ms: int = -1
    """Older messages are compacted at any ratio; -1 for no such limit."""


class BacklogQuota(Struct, frozen=True, rename="camel"):
    """The limit of unacknowledged messages, and the action beyond it."""

    limit_size: int = -1
    """Bytes; -1 for no limit."""
    limit_time: int = -1
    """Seconds; -1 for no limit."""
    policy: QuotaPolicy = "producer_request_hold"

    @classmethod
    def by_type(
        cls, size_bytes: int, age_seconds: int, policy: QuotaPolicy
    ) -> dict[QuotaType, BacklogQuota]:
        """Keep the quotas that limit anything, as Pulsar does: one by size, one by age."""
        quotas: dict[QuotaType, BacklogQuota] = {}
        if size_bytes >= 0:
            quotas["destination_storage"] = cls(limit_size=size_bytes, policy=policy)
        if age_seconds >= 0:
            quotas["message_age"] = cls(limit_time=age_seconds, policy=policy)
        return quotas


class AutoTopicCreation(Struct, frozen=True, rename="camel"):
    """Whether a topic is created when a client names it."""

    allow_auto_topic_creation: bool = True
    topic_type: str | None = "non-partitioned"
    """Or `partitioned`; tools may leave it empty where creation is off."""
    default_num_partitions: int | None = None

    @classmethod
    def of_type(cls, allowed: bool, topic_type: str, partitions: int) -> AutoTopicCreation:
        """Make one from settings; the number counts only for partitioned topics."""
        return cls(allowed, topic_type, partitions if topic_type == "partitioned" else None)

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
    """Whether a subscription is created when a client names it."""

    allow_auto_subscription_creation: bool = True


class InactiveTopics(Struct, frozen=True, rename="camel"):
    """When an unused topic is deleted."""

    inactive_topic_delete_mode: Literal[
        "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"
    ] = "delete_when_no_subscriptions"
    max_inactive_duration_seconds: int = 60
    delete_while_inactive: bool = True


class DelayedDelivery(Struct, frozen=True, rename="camel"):
    """Whether producers may delay the delivery of messages."""

    tick_time: int = 1000
    active: bool = True
    max_delivery_delay_in_millis: int = 0


class AuthPolicies(Struct, frozen=True):
    """Permissions by role, which `core/security/permissions.py` judges by."""

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


Scalar = str | int | float | bool | None
"""What Java's tools read as a text."""


class OffloadPolicies(Struct, frozen=True, rename="camel"):
    """Where and when ledgers are offloaded, for tools that must be able to read it."""

    managed_ledger_offload_driver: Scalar = None
    managed_ledger_offload_bucket: Scalar = None
    managed_ledger_offload_region: Scalar = None
    managed_ledger_offload_service_endpoint: Scalar = None
    managed_ledger_offload_threshold_in_bytes: int | None = None
    managed_ledger_offload_threshold_in_seconds: int | None = None
    managed_ledger_offload_deletion_lag_in_millis: int | None = None
    managed_ledger_offload_max_threads: int | None = None
    managed_ledger_offload_read_threads: int | None = None
    managed_ledger_offload_prefetch_rounds: int | None = None
    managed_ledger_offload_max_block_size_in_bytes: int | None = None
    managed_ledger_offload_read_buffer_size_in_bytes: int | None = None
    managed_ledger_offloaded_read_priority: OffloadedReads | None = None
    managed_ledger_extra_configurations: dict[str, Scalar] | None = None
    s3_managed_ledger_offload_max_block_size_in_bytes: int | None = None
    s3_managed_ledger_offload_read_buffer_size_in_bytes: int | None = None
    s3_managed_ledger_offload_bucket: Scalar = None
    s3_managed_ledger_offload_region: Scalar = None
    s3_managed_ledger_offload_service_endpoint: Scalar = None
    s3_managed_ledger_offload_credential_id: Scalar = None
    s3_managed_ledger_offload_credential_secret: Scalar = None
    s3_managed_ledger_offload_role: Scalar = None
    s3_managed_ledger_offload_role_session_name: Scalar = None
    gcs_managed_ledger_offload_max_block_size_in_bytes: int | None = None
    gcs_managed_ledger_offload_read_buffer_size_in_bytes: int | None = None
    gcs_managed_ledger_offload_bucket: Scalar = None
    gcs_managed_ledger_offload_region: Scalar = None
    gcs_managed_ledger_offload_service_account_key_file: Scalar = None
    file_system_profile_path: Scalar = None
    file_system_uri: Scalar = field(name="fileSystemURI", default=None)
    offloaders_directory: Scalar = None
