"""How often one consumer may attach to a topic: the subscribe rate.

A consumer is known by where it comes from and what it is called. Whoever is too quick waits, and is
refused only where the wait would outlast its patience. Invariant: the number of those remembered
has an end; who was seen first is forgotten first.
"""

from __future__ import annotations

from typing import Final

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Overloaded
from magnetar.core.kernel.throttle import RateLimit, Throttle

WAIT_SECONDS_MAX: Final = 10.0
"""A client waits longer than this for an answer, but not much longer."""
REMEMBERED_MAX: Final = 10_000
"""Consumers of one topic."""

Identity = tuple[str, str, int]
"""Host, name, and number on its connection."""


class Subscribers:
    """See the module's docstring."""

    __slots__ = ("_throttles",)

    def __init__(self) -> None:
        self._throttles: dict[Identity, Throttle] = {}

    async def admit(self, who: Identity, limit: RateLimit, clock: Clock) -> None:
        """Return when it may attach; `Overloaded` if that is too far off."""
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
