"""Buckets: what passes in the mean is what the limit says, whatever comes when."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.rates import Inflow, Rates
from magnetar.core.kernel.throttle import UNLIMITED, RateLimit, Throttle, throttle_for, wait_seconds


def test_a_period_at_once_and_then_a_debt_to_be_waited_for() -> None:
    throttle = Throttle(RateLimit(messages=10), 0.0)
    assert throttle.wait_seconds(0.0) == 0
    throttle.spend(10, 999)
    assert 0 < throttle.wait_seconds(0.0) < 0.01
    throttle.spend(20, 0)
    assert 2 <= throttle.wait_seconds(0.0) < 2.01
    assert throttle.wait_seconds(2.01) == 0
    messages, size = throttle.allowance(100.0)
    assert (messages, size) == (10, float("inf")), "what was not used is not saved up"


def test_bytes_and_messages_each_have_a_bucket() -> None:
    throttle = Throttle(RateLimit(messages=10, bytes=100, period_seconds=2), 0.0)
    throttle.spend(1, 200)
    assert 2 <= throttle.wait_seconds(0.0) < 2.01
    assert throttle.allowance(1.0) == (10, -50)


def test_a_relative_limit_is_so_much_more_than_comes_in() -> None:
    inflow = Rates(Inflow(), 0)
    limit = RateLimit(messages=10, bytes=100, period_seconds=2, relative=True)
    throttle = Throttle(limit, 0.0, inflow)
    assert throttle.allowance(0.0) == (10, 100)
    inflow.sample(Inflow(messages=50, bytes=2_000), 10_000)
    throttle.spend(30, 0)
    assert throttle.allowance(1.0) == (-10, 100 + 250), "filled with 20 and 500 in two seconds"
    assert 1.0 <= throttle.wait_seconds(1.0) < 1.001
    assert throttle.allowance(100.0) == (20, 500)
    assert Throttle(RateLimit(messages=10), 0.0, inflow).allowance(100.0)[0] == 10
    only_bytes = Throttle(RateLimit(bytes=100, relative=True), 0.0, inflow)
    assert only_bytes.allowance(100.0) == (inf, 300), "what was not limited is not"


def test_a_clock_set_back_gives_nothing() -> None:
    throttle = Throttle(RateLimit(messages=1), 10.0)
    throttle.spend(1, 0)
    assert throttle.allowance(5.0)[0] == 0


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 0.5)), min_size=1, max_size=50))
def test_the_mean_is_kept(bursts: list[tuple[int, float]]) -> None:
    throttle, now, passed = Throttle(RateLimit(messages=20), 0.0), 0.0, 0
    for messages, pause in bursts:
        now += pause + throttle.wait_seconds(now + pause)
        assert throttle.wait_seconds(now) < 1e-6
        throttle.spend(messages, 0)
        passed += messages
    # one bucket full at the start, and the last burst overdrawn
    assert passed <= 20 * now + 20 + bursts[-1][0]


def test_the_same_limit_keeps_its_bucket() -> None:
    limit = RateLimit(messages=5)
    first = throttle_for(limit, None, 0.0)
    assert throttle_for(RateLimit(messages=5), first, 1.0) is first
    other = throttle_for(RateLimit(messages=6), first, 1.0)
    assert other is not None
    assert other is not first
    assert throttle_for(UNLIMITED, first, 1.0) is None


@pytest.mark.parametrize("limit", [UNLIMITED, RateLimit(messages=7)])
def test_nobody_waits_for_a_former_limit(limit: RateLimit) -> None:
    former = Throttle(RateLimit(messages=1, bytes=1), 0.0)
    former.spend(1_000, 1_000)
    assert former.wait_seconds(0.0) > 900
    throttle_for(limit, former, 0.0)
    assert former.wait_seconds(0.0) == 0
    former.spend(1_000, 1_000)
    assert former.wait_seconds(0.0, 1_000) == 0


def test_the_longest_wait_of_several() -> None:
    slow, quick = (Throttle(RateLimit(messages=rate), 0.0) for rate in (1, 10))
    for throttle in (slow, quick):
        throttle.spend(11, 0)
    assert 10 <= wait_seconds((quick, slow), 0.0) < 10.1
    assert wait_seconds((), 0.0) == 0
