"""Rates over the last seconds, and the waits that bring them within a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.quotas.rate_window import (
    BURST_SECONDS,
    SAMPLES,
    WINDOW_SECONDS,
    RateWindow,
)

AMOUNTS = st.floats(0, 1e6)


class KafkaRate:
    """`Rate.measure`, `Rate.windowSize` and `SampledStat` of Kafka 4.3, read one to one: samples in
    a ring, in milliseconds. What `RateWindow` is compared with.
    """

    def __init__(self) -> None:
        self.samples: list[tuple[int, float]] = []

    def record(self, value: float, now_ms: int) -> None:
        if not self.samples or now_ms - self.samples[-1][0] >= 1000:
            self.samples = [*self.samples, (now_ms, 0.0)][-11:]
        begun, total = self.samples[-1]
        self.samples[-1] = (begun, total + value)

    def throttle_ms(self, bound: float, now_ms: int) -> float:
        alive = [one for one in self.samples if now_ms - one[0] < 11 * 1000]
        oldest = alive[0][0] if alive else now_ms
        elapsed = now_ms - oldest
        full_windows = elapsed // 1000
        if full_windows < 10:
            elapsed += (10 - full_windows) * 1000
        rate = sum(total for _, total in alive) / (elapsed / 1000)
        return max((rate - bound) / bound * elapsed, 0.0)


@given(
    st.lists(st.tuples(st.integers(0, 15_000), AMOUNTS), min_size=1, max_size=30),
    st.floats(1, 1e6),
)
def test_waits_are_those_of_kafkas_formula(uses: list[tuple[int, float]], limit: float) -> None:
    window, kafka, now_ms = RateWindow(limit), KafkaRate(), 0
    for pause_ms, amount in uses:
        now_ms += pause_ms
        kafka.record(amount, now_ms)
        # a thousandth of binary milliseconds has no rounding that could move a sample
        waits = window.spend(amount, now_ms / 1000)
        assert waits * 1000 == pytest.approx(kafka.throttle_ms(limit, now_ms), rel=1e-6, abs=1e-3)


@given(st.lists(AMOUNTS, min_size=2, max_size=60), st.floats(1, 1e4))
def test_who_waits_as_it_is_told_has_twice_the_limit_at_most(
    amounts: list[float], limit: float
) -> None:
    """A wait that is longer than the window forgets all, so that another burst follows it."""
    window, now, total = RateWindow(limit), 0.0, 0.0
    for amount in amounts:
        total += amount
        now += window.spend(amount, now)
    assert total <= 2 * limit * (now + WINDOW_SECONDS) * (1 + 1e-6)


@given(st.floats(0.05, 1.0), st.floats(1, 1e6))
def test_a_steady_client_has_its_limit(part: float, limit: float) -> None:
    window, now, total = RateWindow(limit), 0.0, 0.0
    while now < 300:
        total += part * limit
        now += window.spend(part * limit, now)
    assert total / now == pytest.approx(limit, rel=0.15)


@given(st.lists(AMOUNTS, min_size=1, max_size=10), st.floats(1, 1e6), st.floats(0, 100))
def test_an_idle_window_is_a_new_one(amounts: list[float], limit: float, used: float) -> None:
    window = RateWindow(limit)
    for second, amount in enumerate(amounts):
        window.spend(amount, second)
    later = len(amounts) + WINDOW_SECONDS
    assert later - window.used_at >= WINDOW_SECONDS
    assert window.spend(used, later) == RateWindow(limit).spend(used, later)


def test_a_burst_is_what_may_be_used_at_once() -> None:
    window = RateWindow(100.0)
    assert window.burst == 100 * BURST_SECONDS
    assert window.spend(window.burst, 5.0) == 0
    assert window.spend(1.0, 5.0) > 0
    assert window.spend(-1.0, 5.0) == 0, "it is taken back"
    assert window.used(5.0) == window.burst


def test_samples_are_few() -> None:
    window = RateWindow(1.0)
    for second in range(100):
        window.spend(1.0, second / 2)
    assert len(window._samples) <= SAMPLES
