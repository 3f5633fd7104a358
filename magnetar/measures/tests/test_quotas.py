"""Metrics of quotas: by kind, counted and timed."""

from __future__ import annotations

from magnetar.core.quotas.limits import DEFAULT, QuotaEntity, QuotaKey
from magnetar.core.quotas.usage import QuotaUsage
from magnetar.core.testing.clock import FixedClock
from magnetar.measures.quotas import families
from magnetar.wire.http.metrics.exposition import text


def figures(usage: QuotaUsage) -> dict[str, str]:
    lines = [line for line in text(families(usage)).splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_every_kind_of_quota_is_there_from_the_start() -> None:
    found = figures(QuotaUsage(FixedClock()))
    assert set(found) == {
        f'magnetar_quota_{name}_total{{quota="{key.value}"}}'
        for name in ("throttles", "throttled_seconds")
        for key in QuotaKey
    }
    assert set(map(float, found.values())) == {0}


def test_waits_are_counted_and_summed() -> None:
    usage = QuotaUsage(FixedClock())
    usage.throttled(QuotaKey.PRODUCED_BYTES, 1.5)
    usage.throttled(QuotaKey.PRODUCED_BYTES, 0.5)
    found = figures(usage)
    assert found['magnetar_quota_throttles_total{quota="producer_byte_rate"}'] == "2"
    seconds = found['magnetar_quota_throttled_seconds_total{quota="producer_byte_rate"}']
    assert float(seconds) == 2


def test_a_connection_that_is_turned_away_counts() -> None:
    usage = QuotaUsage(FixedClock())
    usage.rules.put(QuotaEntity(address=DEFAULT), {QuotaKey.CONNECTIONS: 0.1})
    usage.changed()
    waits = [usage.arrived("10.0.0.1") for _ in range(3)]
    assert waits == [0, 1, 1]
    found = figures(usage)
    key = 'quota="connection_creation_rate"'
    assert found[f"magnetar_quota_throttles_total{{{key}}}"] == "2"
    assert float(found[f"magnetar_quota_throttled_seconds_total{{{key}}}"]) == 2
