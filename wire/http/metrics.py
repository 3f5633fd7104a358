"""`/metrics`: every figure as Prometheus reads it, under Pulsar's names where it has one.

The figures are counters that parts keep anyway, and rates that the core samples; they are gathered
when asked for, some topics at a time, so that ten thousand topics cost no pause. Of parts unknown
here (link, storage) whoever composes the server hands over families ready-made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

import trio
from starlette.responses import Response, StreamingResponse

from core.broker import AnyTopic
from core.rates import Outflow
from core.topic.statistics import statistics
from core.topic.subscription import Subscription
from core.topic.topic import Topic
from core.topic.volatile import VolatileSubscription
from wire.http.asking import Ask
from wire.http.exposition import CONTENT_TYPE, Family, gauge, label_text, text
from wire.http.routes import Table

TOPICS_PER_REST: Final = 50
"""Topics gathered before the loop gets its turn: about two milliseconds."""

NAMES: Final = (
    ("pulsar_subscriptions_count", "gauge", "Subscriptions of the topic"),
    ("pulsar_producers_count", "gauge", "Producers attached to the topic"),
    ("pulsar_consumers_count", "gauge", "Consumers attached to the topic"),
    ("pulsar_rate_in", "gauge", "Messages published per second"),
    ("pulsar_rate_out", "gauge", "Messages delivered per second"),
    ("pulsar_throughput_in", "gauge", "Bytes published per second"),
    ("pulsar_throughput_out", "gauge", "Bytes delivered per second"),
    ("pulsar_in_messages_total", "counter", "Messages published since the topic was loaded"),
    ("pulsar_in_bytes_total", "counter", "Bytes published since the topic was loaded"),
    ("pulsar_out_messages_total", "counter", "Messages delivered since the topic was loaded"),
    ("pulsar_out_bytes_total", "counter", "Bytes delivered since the topic was loaded"),
    ("pulsar_msg_backlog", "gauge", "Entries that durable subscriptions have before them"),
    ("pulsar_storage_size", "gauge", "Bytes of payload that are stored"),
    ("pulsar_storage_backlog_size", "gauge", "Bytes before the slowest durable subscription"),
    ("pulsar_storage_write_rate", "gauge", "Messages stored per second"),
    ("pulsar_subscription_back_log", "gauge", "Entries before the subscription"),
    ("pulsar_subscription_msg_rate_out", "gauge", "Messages delivered per second"),
    ("pulsar_subscription_msg_throughput_out", "gauge", "Bytes delivered per second"),
    ("pulsar_subscription_msg_ack_rate", "gauge", "Messages acknowledged per second"),
    ("pulsar_subscription_msg_rate_redeliver", "gauge", "Messages delivered again per second"),
    ("pulsar_subscription_msg_rate_expired", "gauge", "Messages expired per second"),
    ("pulsar_subscription_unacked_messages", "gauge", "Messages delivered, not acknowledged"),
    ("pulsar_subscription_blocked_on_unacked_messages", "gauge", "1 while that is too many"),
    ("pulsar_subscription_delayed", "gauge", "Entries that wait for their time"),
    ("pulsar_subscription_consumers_count", "gauge", "Consumers attached"),
)


class Families:
    """The families of topics and subscriptions, by name, in a fixed order."""

    def __init__(self) -> None:
        self.by_name = {
            name: Family(name, "counter" if kind == "counter" else "gauge", about, [])
            for name, kind, about in NAMES
        }

    def add(self, labels: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.by_name[name].add(value, labels)


async def metrics(ask: Ask) -> Response:
    """All of it. Never redirected: probes of many suites ask here first."""
    families = [*_broker(ask), *ask.front.extra_metrics(), *(await _topics(ask)).by_name.values()]
    return StreamingResponse(_written(families), media_type=CONTENT_TYPE)


async def _written(families: Iterable[Family]) -> AsyncIterator[str]:
    """Family by family: with thousands of topics each is long enough for one turn of the loop."""
    for family in families:
        if family.samples:
            yield text([family])
            await trio.lowlevel.checkpoint()


def _broker(ask: Ask) -> list[Family]:
    broker, options = ask.broker, ask.options
    version = gauge("pulsar_version_info", "What is running")
    labels = (("cluster", broker.settings.cluster), ("version", options.version))
    version.add(1, label_text(labels))
    topics = gauge("pulsar_topics_count", "Topics that are loaded, by namespace")
    per_namespace: dict[str, int] = {}
    for topic in broker.topics.values():
        namespace = str(topic.name.namespace)
        per_namespace[namespace] = per_namespace.get(namespace, 0) + 1
    for namespace, count in per_namespace.items():
        topics.add(count, _labels(broker.settings.cluster, namespace))
    return [
        version,
        topics,
        gauge("magnetar_ready", "1 while writes are taken", float(options.readiness() is None)),
        gauge(
            "magnetar_tail_cache_bytes", "Payload kept for close readers", broker.tail_cache.bytes
        ),
        gauge(
            "magnetar_tail_cache_limit_bytes",
            "The most that is kept",
            broker.settings.tail_cache_bytes_max,
        ),
    ]


async def _topics(ask: Ask) -> Families:
    families = Families()
    cluster = ask.broker.settings.cluster
    for count, topic in enumerate(list(ask.broker.topics.values())):
        if count % TOPICS_PER_REST == 0:
            await trio.lowlevel.checkpoint()
        _topic(families, cluster, topic)
    return families


def _topic(families: Families, cluster: str, topic: AnyTopic) -> None:
    namespace = str(topic.name.namespace)
    rates = topic.rates.per_second
    out_rates, out = Outflow(), topic.outflow_before
    consumers = 0
    for subscription in topic.subscriptions.values():
        out_rates = out_rates.plus(subscription.rates.per_second)
        out = out.plus(subscription.outflow())
        consumers += len(subscription.consumers)
        labels = _labels(cluster, namespace, topic.name.full, subscription.name)
        families.add(labels, _subscription(subscription))
    figures = {
        "pulsar_subscriptions_count": len(topic.subscriptions),
        "pulsar_producers_count": len(topic.producers),
        "pulsar_consumers_count": consumers,
        "pulsar_rate_in": rates.messages,
        "pulsar_rate_out": out_rates.messages,
        "pulsar_throughput_in": rates.bytes,
        "pulsar_throughput_out": out_rates.bytes,
        "pulsar_in_messages_total": topic.messages_in,
        "pulsar_in_bytes_total": topic.bytes_in,
        "pulsar_out_messages_total": out.messages,
        "pulsar_out_bytes_total": out.bytes,
    }
    if isinstance(topic, Topic):
        cursors = [each.cursor for each in topic.subscriptions.values()]
        figures |= {
            "pulsar_msg_backlog": sum(each.backlog for each in cursors if each.durable),
            "pulsar_storage_size": topic.ledger.size,
            "pulsar_storage_backlog_size": topic.backlog_bytes(),
            "pulsar_storage_write_rate": rates.messages,
        }
    families.add(_labels(cluster, namespace, topic.name.full), figures)


def _subscription(subscription: Subscription | VolatileSubscription) -> dict[str, float]:
    rates = subscription.rates.per_second
    figures = {
        "pulsar_subscription_back_log": subscription.cursor.backlog,
        "pulsar_subscription_msg_rate_out": rates.messages,
        "pulsar_subscription_msg_throughput_out": rates.bytes,
        "pulsar_subscription_msg_ack_rate": rates.acked,
        "pulsar_subscription_msg_rate_redeliver": rates.redelivered,
        "pulsar_subscription_msg_rate_expired": rates.expired,
        "pulsar_subscription_consumers_count": len(subscription.consumers),
    }
    if isinstance(subscription, Subscription):
        now = statistics(subscription)
        figures |= {
            "pulsar_subscription_unacked_messages": now.unacked,
            "pulsar_subscription_blocked_on_unacked_messages": float(now.blocked),
            "pulsar_subscription_delayed": now.delayed,
        }
    return figures


def _labels(cluster: str, namespace: str, topic: str = "", subscription: str = "") -> str:
    labels = [("cluster", cluster), ("namespace", namespace)]
    if topic:
        labels.append(("topic", topic))
    if subscription:
        labels.append(("subscription", subscription))
    return label_text(labels)


ROUTES: Final[Table] = (("GET", "/metrics", metrics),)
