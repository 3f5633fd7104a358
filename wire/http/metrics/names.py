"""The metrics of topics and subscriptions: name, kind, meaning. Pure.

The names are Pulsar's own, so that its dashboards work with this server; where Pulsar counts
entries and calls them messages, so do the texts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Names = tuple[tuple[str, str, str], ...]

LATENCIES: Final = (
    "le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow",
)  # fmt: skip
SIZES: Final = (
    "le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb",
    "le_overflow",
)  # fmt: skip


def _buckets(name: str, ends: tuple[str, ...], about: str) -> Names:
    """The metrics of a histogram: each bucket is its own metric, and not cumulative."""
    return (
        *((f"{name}_{end}", "gauge", f"{about}, since the topic was loaded") for end in ends),
        (f"{name}_count", "gauge", "All of them"),
        (f"{name}_sum", "gauge", "What all of them have together"),
    )


OF_TOPICS: Final[Names] = (
    ("pulsar_subscriptions_count", "gauge", "Subscriptions of the topic"),
    ("pulsar_producers_count", "gauge", "Producers attached to the topic"),
    ("pulsar_consumers_count", "gauge", "Consumers attached to the topic"),
    ("pulsar_rate_in", "gauge", "Messages published per second"),
    ("pulsar_rate_out", "gauge", "Messages delivered per second"),
    ("pulsar_throughput_in", "gauge", "Bytes published per second"),
    ("pulsar_throughput_out", "gauge", "Bytes delivered per second"),
    ("pulsar_average_msg_size", "gauge", "Bytes per message published"),
    ("pulsar_in_messages_total", "counter", "Messages published since the topic was loaded"),
    ("pulsar_in_bytes_total", "counter", "Bytes published since the topic was loaded"),
    ("pulsar_out_messages_total", "counter", "Messages delivered since the topic was loaded"),
    ("pulsar_out_bytes_total", "counter", "Bytes delivered since the topic was loaded"),
    ("pulsar_msg_backlog", "gauge", "Entries that durable subscriptions have before them"),
    ("pulsar_storage_size", "gauge", "Bytes of payload that are stored"),
    ("pulsar_storage_logical_size", "gauge", "The same without copies: there is one"),
    ("pulsar_storage_backlog_size", "gauge", "Bytes before the slowest durable subscription"),
    ("pulsar_storage_backlog_quota_limit", "gauge", "Bytes that may wait, -1 for any number"),
    ("pulsar_storage_backlog_quota_limit_time", "gauge", "Seconds, -1 for any number"),
    ("pulsar_storage_offloaded_size", "gauge", "Bytes that were offloaded: none"),
    ("pulsar_storage_write_rate", "gauge", "Entries stored per second"),
    ("pulsar_txn_tb_active_total", "gauge", "Transactions that are open in the topic"),
    ("pulsar_txn_tb_aborted_total", "gauge", "Aborted ones that it still has messages of"),
    ("pulsar_txn_tb_committed_total", "counter", "Committed ones since the topic was loaded"),
    ("magnetar_lost_ranges_total", "counter", "Ranges of entries that were found unreadable"),
    ("magnetar_lost_entries_total", "counter", "Entries in those"),
    *_buckets("pulsar_storage_write_latency", LATENCIES, "Entries that took up to so many ms"),
    *_buckets("pulsar_storage_ledger_write_latency", LATENCIES, "The same, of storage alone"),
    *_buckets("pulsar_entry_size", SIZES, "Entries of up to that size, by the mean of each run"),
)
OF_COORDINATORS: Final[Names] = (
    ("pulsar_txn_active_count", "gauge", "Transactions that are not ended"),
    ("pulsar_txn_created_total", "counter", "Transactions begun since the start"),
    ("pulsar_txn_committed_total", "counter", "Those that were committed"),
    ("pulsar_txn_aborted_total", "counter", "Those that were aborted"),
    ("pulsar_txn_timeout_total", "counter", "Those of them whose time was over"),
)
"""Of each coordinator of Pulsar's transactions."""
OF_RESOURCE_GROUPS: Final[Names] = (
    (
        "pulsar_resource_group_messages_used_total",
        "counter",
        "Messages that counted against a rate since one of the group's topics was loaded",
    ),
    ("pulsar_resource_group_bytes_used_total", "counter", "Bytes of those"),
)
"""Of each resource group, for publishing and for delivery."""
OF_SUBSCRIPTIONS: Final[Names] = (
    ("pulsar_subscription_back_log", "gauge", "Entries before the subscription"),
    ("pulsar_subscription_back_log_no_delayed", "gauge", "Those of them that need not wait"),
    ("pulsar_subscription_msg_rate_out", "gauge", "Messages delivered per second"),
    ("pulsar_subscription_msg_throughput_out", "gauge", "Bytes delivered per second"),
    ("pulsar_subscription_msg_ack_rate", "gauge", "Messages acknowledged per second"),
    ("pulsar_subscription_msg_rate_redeliver", "gauge", "Messages delivered again per second"),
    ("pulsar_subscription_msg_rate_expired", "gauge", "Messages expired per second"),
    ("pulsar_subscription_total_msg_expired", "gauge", "Entries expired"),
    ("pulsar_subscription_unacked_messages", "gauge", "Messages delivered, not acknowledged"),
    ("pulsar_subscription_blocked_on_unacked_messages", "gauge", "1 while that is too many"),
    ("pulsar_subscription_delayed", "gauge", "Entries that wait for their time"),
    ("pulsar_subscription_in_replay", "gauge", "Entries that wait to be delivered again"),
    ("pulsar_subscription_consumers_count", "gauge", "Consumers attached"),
    ("pulsar_subscription_last_expire_timestamp", "gauge", "Milliseconds since 1970"),
    ("pulsar_subscription_last_acked_timestamp", "gauge", "Milliseconds since 1970"),
    ("pulsar_subscription_last_consumed_flow_timestamp", "gauge", "Milliseconds since 1970"),
    ("pulsar_subscription_last_consumed_timestamp", "gauge", "Milliseconds since 1970"),
    (
        "pulsar_subscription_last_mark_delete_advanced_timestamp",
        "gauge",
        "Milliseconds since 1970",
    ),
)

SUMMED: Final[Mapping[str, str]] = {
    "pulsar_broker_subscriptions_count": "pulsar_subscriptions_count",
    "pulsar_broker_producers_count": "pulsar_producers_count",
    "pulsar_broker_consumers_count": "pulsar_consumers_count",
    "pulsar_broker_rate_in": "pulsar_rate_in",
    "pulsar_broker_rate_out": "pulsar_rate_out",
    "pulsar_broker_throughput_in": "pulsar_throughput_in",
    "pulsar_broker_throughput_out": "pulsar_throughput_out",
    "pulsar_broker_msg_backlog": "pulsar_msg_backlog",
    "pulsar_broker_storage_size": "pulsar_storage_size",
    "pulsar_broker_storage_logical_size": "pulsar_storage_logical_size",
    "pulsar_broker_storage_write_rate": "pulsar_storage_write_rate",
}
"""The broker's name for what all topics have together."""
