"""The waits of clients beyond their quotas as metric families."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.wire.http.metrics.exposition import Family, counter, label_text

if TYPE_CHECKING:
    from magnetar.core.quotas.usage import QuotaUsage


def families(usage: QuotaUsage) -> list[Family]:
    """By the kind of quota, under the names that Kafka's tools have for them."""
    count = counter("magnetar_quota_throttles_total", "Times that a client was beyond its quota")
    seconds = counter(
        "magnetar_quota_throttled_seconds_total", "How long clients had to wait for that"
    )
    for key in usage.throttles:
        labels = label_text([("quota", key.value)])
        count.add(usage.throttles[key], labels)
        seconds.add(usage.throttled_seconds[key], labels)
    return [count, seconds]
