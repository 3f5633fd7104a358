"""When a subscription's consumers last did something: those attached, and those that have left."""

from __future__ import annotations

from typing import NamedTuple

from magnetar.core.topic.non_persistent import VolatileSubscription
from magnetar.core.topic.subscription.subscription import Subscription


class LastTimes(NamedTuple):
    """Milliseconds since 1970; 0 for never."""

    flow_ms: int
    consumed_ms: int
    acked_ms: int

    @staticmethod
    def of(subscription: Subscription | VolatileSubscription) -> LastTimes:
        """A topic that stores nothing remembers nobody who has left."""
        left = (0, 0, 0)
        if isinstance(subscription, Subscription):
            left = (
                subscription.last_flow_ms,
                subscription.last_consumed_ms,
                subscription.last_acked_ms,
            )
        here = [
            (each.last_flow_ms, each.last_consumed_ms, each.last_acked_ms)
            for each in subscription.consumers
        ]
        return LastTimes(*map(max, *here, left)) if here else LastTimes(*left)
