"""Mutations within a limit, and beyond it."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.quotas.mutations import MutationQuota
from magnetar.core.testing.clock import FixedClock

LIMIT = RateLimit(messages=10, period_seconds=10)


@pytest.mark.parametrize("strict", [True, False])
def test_beyond_the_limit(strict: bool) -> None:
    clock, waits = FixedClock(), list[float]()
    bucket = Throttle(LIMIT, clock.monotonic())
    quota = MutationQuota(bucket, clock, waits.append, strict=strict)
    assert quota.take(4)
    assert not waits
    assert quota.take(16), "a bucket that is not empty may be overdrawn"
    assert [round(wait) for wait in waits] == ([] if strict else [10])
    assert quota.take(1) is not strict
    assert round(waits[-1]) == (10 if strict else 11)
    clock.forward(11.1)
    assert quota.take(1), "what was refused did not count"
