"""Rates: counters sampled periodically, as figures per second. Pure.

The measured object only counts, so the hot path has additions alone. A task samples the counters
every few seconds (`core/broker/rate_sampler.py`); between two samples a rate does not change.

Invariant: a rate is the true mean of the time between the last two samples, and never negative.
"""

from __future__ import annotations

from operator import add
from typing import Final, Generic, NamedTuple, TypeVar

APART_MS_MIN: Final = 1_000
"""A sample that follows sooner is ignored, because one message would give a high rate."""


class Inflow(NamedTuple):
    """What was published: counts since the start, or rates per second."""

    messages: float = 0
    bytes: float = 0
    chunks: float = 0
    entries: float = 0
    """Stored entries; a batch is one."""


class Outflow(NamedTuple):
    """What was delivered and acknowledged: counts since the start, or rates per second."""

    messages: float = 0
    bytes: float = 0
    acked: float = 0
    redelivered: float = 0
    expired: float = 0
    chunks: float = 0
    """Chunks of large messages."""
    dropped: float = 0
    """Entries of a non-persistent topic that no consumer could take."""

    def plus(self, other: Outflow) -> Outflow:
        return Outflow(*map(add, self, other))


Figures = TypeVar("Figures", Inflow, Outflow)


class Rates(Generic[Figures]):
    """The rates of one object's counters."""

    __slots__ = ("_counts", "_sampled_ms", "_zero", "per_second")

    def __init__(self, zero: Figures, now_ms: int) -> None:
        self.per_second: Figures = zero
        self._zero: Figures = zero
        self._counts: Figures = zero
        self._sampled_ms = now_ms

    def sample(self, counts: Figures, now_ms: int) -> None:
        """Take a sample of the counters."""
        elapsed_ms = now_ms - self._sampled_ms
        if 0 <= elapsed_ms < APART_MS_MIN:
            return
        before, self._counts, self._sampled_ms = self._counts, counts, now_ms
        # nothing moved is the usual case of thousands of idle topics; a clock may be set back
        if counts == before or elapsed_ms < 0:
            self.per_second = self._zero
            return
        grown = (max(new - old, 0) for new, old in zip(counts, before, strict=True))
        self.per_second = type(counts)(*(count * 1000 / elapsed_ms for count in grown))
