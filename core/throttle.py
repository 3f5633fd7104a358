"""Rate limits: how much may pass in a period, and a bucket that says when more may. Pure.

Who is limited spends first and asks then: a bucket may be overdrawn, by a run of messages or a
large one, and nothing more passes until the debt is paid. So nothing is refused, and the mean is
kept. Limits are what policies say; waiting is the affair of whoever spends.

Invariant: a bucket never holds more than one period's worth, whatever the clock does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from msgspec import Struct


class RateLimit(Struct, frozen=True):
    """So much in a period; 0 is no limit."""

    messages: float = 0
    bytes: float = 0
    period_seconds: float = 1

    @property
    def limits(self) -> bool:
        """Whether it limits anything."""
        return self.messages > 0 or self.bytes > 0


UNLIMITED: Final = RateLimit()


class Throttle:
    """A bucket for messages and one for bytes; times are of a clock that only goes forward."""

    __slots__ = ("_at", "_bytes", "_messages", "limit")

    def __init__(self, limit: RateLimit, now: float) -> None:
        self.limit = limit
        self._messages, self._bytes = limit.messages or inf, limit.bytes or inf
        self._at = now

    def spend(self, messages: float, size: float) -> None:
        """So much has passed."""
        self._messages -= messages
        self._bytes -= size

    def room(self, now: float) -> tuple[float, float]:
        """How many messages and bytes may pass now; nothing may unless both are above 0."""
        periods = max(now - self._at, 0) / self.limit.period_seconds
        self._at = now
        if self.limit.messages:
            filled = self._messages + periods * self.limit.messages
            self._messages = min(filled, self.limit.messages)
        if self.limit.bytes:
            self._bytes = min(self._bytes + periods * self.limit.bytes, self.limit.bytes)
        return self._messages, self._bytes

    def wait_seconds(self, now: float, messages_wanted: float = 0) -> float:
        """How long until so many messages, or else anything at all, may pass; 0 for now."""
        messages, size = self.room(now)
        wait = 0.0
        if messages <= 0 or messages < messages_wanted:
            wait = (max(SLIVER, messages_wanted) - messages) / self.limit.messages
        if size <= 0:
            wait = max(wait, (SLIVER - size) / self.limit.bytes)
        return wait * self.limit.period_seconds


SLIVER: Final = 1e-3
"""Of a message or a byte: a bucket just paid off is not empty, however numbers are rounded."""


def throttle_for(limit: RateLimit, before: Throttle | None, now: float) -> Throttle | None:
    """A bucket for a limit: the same as before while that is the same; None for no limit."""
    if not limit.limits:
        return None
    return before if before is not None and before.limit == limit else Throttle(limit, now)


def wait_seconds(throttles: Sequence[Throttle], now: float) -> float:
    """How long until something may pass all of them."""
    return max((each.wait_seconds(now) for each in throttles), default=0.0)
