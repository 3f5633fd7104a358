"""What holds for a topic that has not decided it: its namespace's word, else the broker's.

For policies that are kept as they come. What the broker says is what it does: one ledger's entries
are on one bookie, and nothing is limited that the settings do not limit.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.core.kernel.throttle import RateLimit
from magnetar.wire.http.admin.policies.limits import Persistence
from magnetar.wire.http.admin.policies.namespaces import STORED, decided
from magnetar.wire.http.asking import Ask

UNDEFINED: Final = "UNDEFINED"
"""What a namespace says that leaves the compatibility of schemas to the broker."""


async def of_namespace_or_broker(ask: Ask, name: str) -> Any:
    """`name` is the last part of the path. None where nobody has decided anything."""
    policies = await ask.broker.catalog.policies(ask.namespace)
    if name == "replication":
        return policies.replication_clusters or [ask.broker.settings.cluster]
    found = decided(STORED[name], policies, ask) if name in STORED else None
    return _of_broker(ask, name) if found in (None, UNDEFINED) else found


def _of_broker(ask: Ask, name: str) -> Any:
    defaults = ask.broker.settings.defaults
    if name == "dispatchRate":
        return _dispatch_rate(defaults.dispatch_rate)
    if name == "subscriptionDispatchRate":
        return _dispatch_rate(defaults.subscription_dispatch_rate)
    if name == "replicatorDispatchRate":
        return _dispatch_rate(RateLimit())
    if name == "subscribeRate":
        rate = defaults.subscribe_rate
        period = rate.period_seconds if rate.limits else 30
        return {
            "subscribeThrottlingRatePerConsumer": round(rate.messages),
            "ratePeriodInSecond": round(period),
        }
    if name == "persistence":
        return Persistence(1, 1, 1, 1.0)
    return "FULL" if name == "schemaCompatibilityStrategy" else None


def _dispatch_rate(rate: RateLimit) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": round(rate.messages),
        "dispatchThrottlingRateInByte": round(rate.bytes),
        "relativeToPublishRate": rate.relative,
        "ratePeriodInSecond": round(rate.period_seconds),
    }
