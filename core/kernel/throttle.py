"""Rate limits as token buckets, which may be overdrawn. Pure.

Callers spend first and check afterwards: a run of messages or a large one may take more tokens than
a bucket has, and nothing more passes until it has filled again. So nothing is refused, and the mean
rate holds (`AsyncTokenBucket.java` of Pulsar 4.2, PIP-322, does the same). Policies set the limits;
callers wait.

Invariant: a bucket never holds more than one period's worth, even if the clock jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.rates import Inflow, Rates


class RateLimit(Struct, frozen=True):
    """The most that may pass in a period; 0 is no limit."""

    messages: float = 0
    bytes: float = 0
    period_seconds: float = 1
    relative: bool = False
    """The limit is added to the rate of what is published, as `relativeToPublishRate` in Pulsar."""

    @property
    def limits(self) -> bool:
        """Whether it limits anything."""
        return self.messages > 0 or self.bytes > 0


UNLIMITED: Final = RateLimit()


class Throttle:
    """A bucket for messages and one for bytes; times are of a clock that only goes forward."""

    __slots__ = ("_at", "_bytes", "_inflow", "_messages", "limit")

    def __init__(self, limit: RateLimit, now: float, inflow: Rates[Inflow] | None = None) -> None:
        self.limit = limit
        self._inflow = inflow if limit.relative else None
        self._messages, self._bytes = limit.messages or inf, limit.bytes or inf
        self._at = now

    def lift(self) -> None:
        """Limit nothing from now on: whoever waits for it goes on, and another limit may hold."""
        self.limit, self._inflow = UNLIMITED, None
        self._messages = self._bytes = inf

    def spend(self, messages: float, size: float) -> None:
        """Take tokens, whether the bucket has them or not."""
        self._messages -= messages
        self._bytes -= size

    def allowance(self, now: float) -> tuple[float, float]:
        """How many messages and bytes may pass now; nothing may unless both are above 0."""
        periods = max(now - self._at, 0) / self.limit.period_seconds
        self._at = now
        messages, size = self._per_period()
        if messages:
            self._messages = min(self._messages + periods * messages, messages)
        if size:
            self._bytes = min(self._bytes + periods * size, size)
        return self._messages, self._bytes

    def _per_period(self) -> tuple[float, float]:
        """The size of the buckets, which is filled in a period; 0 for no limit."""
        limit, inflow = self.limit, self._inflow
        if inflow is None:
            return limit.messages, limit.bytes
        rates, seconds = inflow.per_second, limit.period_seconds
        return (
            limit.messages and limit.messages + rates.messages * seconds,
            limit.bytes and limit.bytes + rates.bytes * seconds,
        )

    def wait_seconds(self, now: float, messages_wanted: float = 0) -> float:
        """The time until so many messages, or by default any, may pass."""
        messages, size = self.allowance(now)
        messages_filled, bytes_filled = self._per_period()
        wait = 0.0
        if messages <= 0 or messages < messages_wanted:
            wait = (max(SLIVER, messages_wanted) - messages) / messages_filled
        if size <= 0:
            wait = max(wait, (SLIVER - size) / bytes_filled)
        return wait * self.limit.period_seconds


SLIVER: Final = 1e-3
"""A part of a message or byte: after a wait a bucket is above 0, however numbers are rounded."""


def throttle_for(
    limit: RateLimit, before: Throttle | None, now: float, inflow: Rates[Inflow] | None = None
) -> Throttle | None:
    """A bucket for a limit: `before` while the limit is unchanged, else that is lifted; None for no
    limit.
    """
    if before is not None:
        if before.limit == limit and limit.limits:
            return before
        before.lift()
    return Throttle(limit, now, inflow) if limit.limits else None


def wait_seconds(throttles: Sequence[Throttle], now: float) -> float:
    """The time until anything may pass all of them."""
    return max((each.wait_seconds(now) for each in throttles), default=0.0)
