"""The subscribe rate: how often one consumer may attach to a topic.

A consumer is identified by host, name and id, as in Pulsar (`SubscribeRateLimiter.java` of 4.2,
`ConsumerIdentifier`). One that attaches too often waits; it is refused only if the wait would be
longer than its client's patience.

Invariant: the number of remembered consumers is limited; the oldest is removed first.
"""

from __future__ import annotations

from typing import Final

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Overloaded
from magnetar.core.kernel.throttle import RateLimit, Throttle

WAIT_SECONDS_MAX: Final = 10.0
"""The longest wait: clients wait for an answer for some time more (30 s by default)."""
REMEMBERED_MAX: Final = 10_000
"""Consumers remembered per topic."""

Identity = tuple[str, str, int]
"""Host, name, and number on its connection."""


class Subscribers:
    """See the module's docstring."""

    __slots__ = ("_throttles",)

    def __init__(self) -> None:
        self._throttles: dict[Identity, Throttle] = {}

    async def admit(self, who: Identity, limit: RateLimit, clock: Clock) -> None:
        """Wait until the consumer may attach; `Overloaded` if that takes too long."""
        if not limit.limits:
            self._throttles.clear()
            return
        throttle = self._throttles.get(who)
        if throttle is None or throttle.limit != limit:
            while len(self._throttles) >= REMEMBERED_MAX:
                del self._throttles[next(iter(self._throttles))]
            throttle = self._throttles[who] = Throttle(limit, clock.monotonic())
        wait = throttle.wait_seconds(clock.monotonic(), 1)
        if wait > WAIT_SECONDS_MAX:
            raise Overloaded(
                f"consumer {who[1]} attaches too often: the subscribe rate is exceeded"
            )
        throttle.spend(1, 0)
        if wait:
            await trio.sleep(wait)
