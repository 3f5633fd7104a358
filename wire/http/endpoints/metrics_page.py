"""`/metrics`: all figures in Prometheus' format, under Pulsar's names where it has one.

The figures are counters that the parts maintain anyway, and rates that the core samples. They are
collected on request, some topics at a time, so that ten thousand topics cause no pause. For parts
that HTTP does not know (link, storage) the composition root supplies the families.

Invariant: a name is declared in `names.py` before it has a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import trio
from starlette.responses import Response, StreamingResponse

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.rates import Outflow
from magnetar.core.ledger.log.statistics import WriteStatistics
from magnetar.core.ledger.read.transaction_index import TransactionIndex
from magnetar.core.quotas.resource_group import ResourceGroup
from magnetar.core.topic.backlog import backlog_bytes, own_size
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.consumer import Subscription
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.metrics import kafka_names
from magnetar.wire.http.metrics.exposition import (
    CONTENT_TYPE,
    Family,
    counter,
    gauge,
    label_text,
    pieces,
)
from magnetar.wire.http.metrics.names import (
    LATENCIES,
    OF_COORDINATORS,
    OF_RESOURCE_GROUPS,
    OF_SUBSCRIPTIONS,
    OF_TOPICS,
    SIZES,
    SUMMED,
)
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

TOPICS_PER_REST: Final = 20
"""Topics collected before yielding to the loop: about a millisecond."""
SAMPLES_PER_REST: Final = 2_000
"""Sent samples that are freed before yielding to the loop."""


class Families:
    """The families of topics and subscriptions, by name and in a fixed order, and their sums.

    The sums are the broker's totals, under their own names.
    """

    def __init__(self) -> None:
        self.by_name = {
            name: Family(name, "counter" if kind == "counter" else "gauge", about, [])
            for name, kind, about in (
                *OF_TOPICS,
                *OF_SUBSCRIPTIONS,
                *OF_COORDINATORS,
                *OF_RESOURCE_GROUPS,
                *kafka_names.OF_PARTITIONS,
                *kafka_names.OF_GROUPS,
            )
        }
        self.sums: Counter[str] = Counter()
        self.topics_of: Counter[str] = Counter()
        """How many topics each namespace has."""

    def add(self, labels: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.by_name[name].add(value, labels)

    def whole(self, cluster: str) -> list[Family]:
        """All families: those of the broker, then those of topics."""
        topics = gauge("pulsar_topics_count", "Topics that are loaded, by namespace")
        for namespace, count in self.topics_of.items():
            topics.add(count, _labels(cluster, namespace))
        labels = label_text((("cluster", cluster),))
        broker = [gauge("pulsar_broker_topics_count", "Topics that are loaded")]
        broker[0].add(self.topics_of.total(), labels)
        for name, of in SUMMED.items():
            broker.append(gauge(name, f"The sum of {of}"))
            broker[-1].add(self.sums[of], labels)
        loaded = self.topics_of.total()
        return [topics, *broker, *kafka_names.of_broker(loaded), *self.by_name.values()]


async def metrics(request: AdminRequest) -> Response:
    """The whole page. It is never redirected: probes of many test suites use it first."""
    page = await request.services.metrics_pages.page(partial(_written, request))
    return StreamingResponse(page.sent(), media_type=CONTENT_TYPE)


async def _written(request: AdminRequest) -> AsyncIterator[bytes]:
    """The page in pieces: with thousands of topics even one family would be a long pause."""
    topics = (await _topics(request)).whole(request.broker.settings.cluster)
    for family in (*_broker(request), *request.services.extra_metrics(), *topics):
        for piece in pieces(family):
            yield piece.encode()
            await trio.lowlevel.checkpoint()
        while family.samples:  # freeing all of them at once would be a pause, too
            del family.samples[-SAMPLES_PER_REST:]
            await trio.lowlevel.checkpoint()


def _broker(request: AdminRequest) -> list[Family]:
    broker, options = request.broker, request.options
    version = gauge("pulsar_version_info", "What is running")
    labels = (("cluster", broker.settings.cluster), ("version", options.version))
    version.add(1, label_text(labels))
    return [
        version,
        gauge(
            "magnetar_http_connections",
            "HTTP connections being served",
            request.services.room.served,
        ),
        counter(
            "magnetar_http_connections_refused_total",
            "HTTP connections over the limit",
            request.services.room.refused,
        ),
        gauge(
            "magnetar_http_pause_seconds_max",
            "The longest step of an HTTP request since the start",
            request.services.pauses.longest_seconds,
        ),
        gauge("magnetar_ready", "1 while writes are accepted", float(options.readiness() is None)),
        gauge("magnetar_tail_cache_bytes", "Bytes in the tail cache", broker.tail_cache.bytes),
        gauge(
            "magnetar_tail_cache_limit_bytes",
            "Limit of the tail cache",
            broker.settings.tail_cache_bytes_max,
        ),
        gauge(
            "magnetar_kept_rows_bytes",
            "Plans of topics that are kept for the next query",
            broker.kept_rows.bytes,
        ),
    ]


async def _topics(request: AdminRequest) -> Families:
    families = Families()
    cluster = request.broker.settings.cluster
    async for topic in Cooperative(list(request.broker.topics.values()), TOPICS_PER_REST):
        _topic(families, cluster, topic)
        if topic.stored is not None:
            _groups(families, request.options, topic.stored)
    await _coordinators(families, cluster, request.options)
    async for group in Cooperative(request.broker.groups.live(), TOPICS_PER_REST):
        _resource_group(families, cluster, group)
    return families


async def _coordinators(families: Families, cluster: str, options: HttpOptions) -> None:
    """Add the coordinators of transactions, if these are on."""
    transactions = options.transactions
    if transactions is None:
        return
    active = await transactions.open_of_each()
    for number, counts in enumerate(transactions.counts):
        own = (
            active[number], counts.begun, counts.committed, counts.aborted, counts.timed_out
        )  # fmt: skip
        labels = label_text((("cluster", cluster), ("coordinator_id", str(number))))
        names = (name for name, _, _ in OF_COORDINATORS)
        families.add(labels, dict(zip(names, own, strict=True)))


def _resource_group(families: Families, cluster: str, group: ResourceGroup) -> None:
    """Add what counted against its rates, if anything did."""
    for kind, use in (("Publish", group.published), ("Dispatch", group.delivered)):
        if use.messages:
            labels = label_text(
                (("cluster", cluster), ("ResourceGroup", group.name), ("MonitoringClass", kind))
            )
            names = (name for name, _, _ in OF_RESOURCE_GROUPS)
            families.add(labels, dict(zip(names, (use.messages, use.bytes), strict=True)))


def _groups(families: Families, options: HttpOptions, topic: PersistentTopic) -> None:
    """Add Kafka groups: durable subscriptions to which Kafka has committed offsets."""
    for subscription in topic.subscriptions.values():
        offset = options.committed_offset(topic.ledger, subscription.cursor)
        if offset is not None:
            labels = kafka_names.labels_of(topic.name, subscription.name)
            families.add(labels, kafka_names.of_group(topic, offset))


def _topic(families: Families, cluster: str, topic: Topic) -> None:
    namespace = str(topic.name.namespace)
    rates = topic.rates.per_second
    out_rates, out = Outflow(), topic.outflow_before
    consumers = 0
    for subscription in topic.subscriptions.values():
        out_rates = out_rates.plus(subscription.rates.per_second)
        out = out.plus(subscription.outflow())
        consumers += len(subscription.consumers)
        labels = _labels(cluster, namespace, topic.name.full, subscription.name)
        own = None if topic.stored is None else topic.stored.subscriptions[subscription.name]
        families.add(labels, _subscription(subscription, own))
    figures: dict[str, float] = {
        "pulsar_subscriptions_count": len(topic.subscriptions),
        "pulsar_producers_count": len(topic.producers),
        "pulsar_consumers_count": consumers,
        "pulsar_rate_in": rates.messages,
        "pulsar_rate_out": out_rates.messages,
        "pulsar_throughput_in": rates.bytes,
        "pulsar_throughput_out": out_rates.bytes,
        "pulsar_average_msg_size": rates.bytes / rates.messages if rates.messages else 0,
        "pulsar_in_messages_total": topic.messages_in,
        "pulsar_in_bytes_total": topic.bytes_in,
        "pulsar_out_messages_total": out.messages,
        "pulsar_out_bytes_total": out.bytes,
    }
    if topic.stored is not None:
        figures |= _storage(topic.stored)
        labels = kafka_names.labels_of(topic.name)
        families.add(labels, kafka_names.of_partition(topic.stored, out.bytes))
    families.add(_labels(cluster, namespace, topic.name.full), figures)
    families.topics_of[namespace] += 1
    for of in SUMMED.values():
        families.sums[of] += figures.get(of, 0)  # type: ignore[assignment]  # rates are no ints


def _storage(topic: PersistentTopic) -> dict[str, float]:
    cursors = [each.cursor for each in topic.subscriptions.values()]
    quotas = topic.policies.backlog_quotas
    by_size, by_age = quotas.get("destination_storage"), quotas.get("message_age")
    size = own_size(topic)
    return {
        "pulsar_msg_backlog": sum(each.backlog for each in cursors if each.durable),
        "pulsar_storage_size": size,
        "pulsar_storage_logical_size": size,
        "pulsar_storage_backlog_size": backlog_bytes(topic),
        "pulsar_storage_backlog_quota_limit": by_size.limit_size if by_size is not None else -1,
        "pulsar_storage_backlog_quota_limit_time": by_age.limit_time if by_age is not None else -1,
        "pulsar_storage_offloaded_size": 0,
        "pulsar_storage_write_rate": topic.rates.per_second.entries,
        **_writes(topic.ledger.writes),
        **(_of_log(topic) if topic.source is None else {}),
    }


def _of_log(topic: PersistentTopic) -> dict[str, float]:
    """What a shadow has in common with its source, where it is counted."""
    return {
        "magnetar_lost_ranges_total": topic.ledger.losses.count,
        "magnetar_lost_entries_total": topic.ledger.losses.entries,
        **_transactions(topic.ledger.transactions),
    }


def _transactions(index: TransactionIndex) -> dict[str, float]:
    """Those of all protocols; empty for a topic that never had any, as most have not."""
    if not index.present:
        return {}
    return {
        "pulsar_txn_tb_active_total": len(index.open),
        "pulsar_txn_tb_aborted_total": len(index.aborted),
        "pulsar_txn_tb_committed_total": index.committed,
    }


def _writes(writes: WriteStatistics) -> dict[str, float]:
    """Write figures; empty for a topic not written since it was loaded, as most are not."""
    entries = writes.entries
    if not entries:
        return {}
    return {
        **_counts("pulsar_storage_write_latency", LATENCIES, writes.latencies),
        "pulsar_storage_write_latency_count": entries,
        "pulsar_storage_write_latency_sum": writes.seconds * 1000,
        **_counts("pulsar_storage_ledger_write_latency", LATENCIES, writes.ledger_latencies),
        "pulsar_storage_ledger_write_latency_count": entries,
        "pulsar_storage_ledger_write_latency_sum": writes.ledger_seconds * 1000,
        **_counts("pulsar_entry_size", SIZES, writes.sizes),
        "pulsar_entry_size_count": entries,
        "pulsar_entry_size_sum": writes.bytes,
    }


def _counts(name: str, ends: tuple[str, ...], counts: list[int]) -> dict[str, float]:
    return {f"{name}_{end}": count for end, count in zip(ends, counts, strict=True)}


def _subscription(
    subscription: Subscription, stored: PersistentSubscription | None
) -> dict[str, float]:
    """Figures of a subscription; `stored` is the same one, if its topic is persistent."""
    rates, attached = subscription.rates.per_second, subscription.consumers
    backlog = subscription.cursor.backlog
    last = subscription.last_times()
    figures: dict[str, float] = {
        "pulsar_subscription_back_log": backlog,
        "pulsar_subscription_msg_rate_out": rates.messages,
        "pulsar_subscription_msg_throughput_out": rates.bytes,
        "pulsar_subscription_msg_ack_rate": rates.acked,
        "pulsar_subscription_msg_rate_redeliver": rates.redelivered,
        "pulsar_subscription_msg_rate_expired": rates.expired,
        "pulsar_subscription_consumers_count": len(attached),
        "pulsar_subscription_last_consumed_flow_timestamp": last.flow_ms,
        "pulsar_subscription_last_consumed_timestamp": last.consumed_ms,
        "pulsar_subscription_last_acked_timestamp": last.acked_ms,
    }
    if stored is not None:
        now = subscription.statistics()
        figures |= {
            "pulsar_subscription_back_log_no_delayed": backlog - now.delayed,
            "pulsar_subscription_unacked_messages": now.unacked,
            "pulsar_subscription_blocked_on_unacked_messages": now.blocked,
            "pulsar_subscription_delayed": now.delayed,
            "pulsar_subscription_in_replay": now.in_replay,
            "pulsar_subscription_total_msg_expired": stored.messages_expired,
            "pulsar_subscription_last_expire_timestamp": stored.last_expired_ms,
            "pulsar_subscription_last_mark_delete_advanced_timestamp": (stored.last_mark_delete_ms),
        }
    return figures


def _labels(cluster: str, namespace: str, topic: str = "", subscription: str = "") -> str:
    labels = [("cluster", cluster), ("namespace", namespace)]
    if topic:
        labels.append(("topic", topic))
    if subscription:
        labels.append(("subscription", subscription))
    return label_text(labels)


ROUTES: Final[Table] = (("GET", "/metrics", metrics, Needs.METRICS),)
