"""Whoever publishes too fast is not read until it has paid."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.testing.line import Line


class Now:
    """Trio's clock as the broker's."""

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_ms(self) -> int:
        return round(trio.current_time() * 1000)


async def test_a_debt_is_paid_by_waiting(autojump_clock: MockClock) -> None:
    line = Line()
    async with trio.open_nursery() as nursery:
        publish = ConnectionThrottle(Now(), nursery.start_soon, line, lambda _: True)
        throttle = Throttle(RateLimit(messages=10), trio.current_time())
        publish.spend((throttle,), 5, 100)
        assert not line.paused
        assert publish.wait_seconds == 0
        began = trio.current_time()
        publish.spend((throttle,), 25, 100)
        assert line.paused
        assert 1.9 < publish.wait_seconds < 2.1
    assert not line.paused
    assert 1.9 < trio.current_time() - began < 2.2


async def test_two_rates_are_owed_together(autojump_clock: MockClock) -> None:
    line = Line()
    async with trio.open_nursery() as nursery:
        publish = ConnectionThrottle(Now(), nursery.start_soon, line, lambda _: True)
        slow = Throttle(RateLimit(bytes=10), trio.current_time())
        fast = Throttle(RateLimit(messages=10), trio.current_time())
        began = trio.current_time()
        publish.spend((fast, slow), 20, 50)
    assert 3.9 < trio.current_time() - began < 4.2


async def test_somebody_looks_meanwhile_and_may_end_it(autojump_clock: MockClock) -> None:
    line, looks = Line(), []

    def look(now: float) -> bool:
        looks.append(now)
        return len(looks) < 3

    async with trio.open_nursery() as nursery:
        publish = ConnectionThrottle(Now(), nursery.start_soon, line, look)
        throttle: Any = Throttle(RateLimit(messages=1), trio.current_time())
        publish.spend((throttle,), 1000, 0)
    assert len(looks) == 3
    assert not line.paused


async def test_a_rate_that_is_lifted_is_noticed_soon(autojump_clock: MockClock) -> None:
    line = Line()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        publish = ConnectionThrottle(Now(), nursery.start_soon, line, lambda _: True)
        throttle = Throttle(RateLimit(messages=1), trio.current_time())
        publish.spend((throttle,), 1_000_000, 0)
        await trio.sleep(10)
        throttle.lift()
    assert not line.paused
    assert trio.current_time() - began <= 11


async def test_a_quota_says_how_much_longer_it_takes(autojump_clock: MockClock) -> None:
    line = Line()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        throttle = ConnectionThrottle(Now(), nursery.start_soon, line, lambda _: True)
        assert throttle.hold(2) == 2
        await trio.sleep(1)
        assert throttle.hold(0.5) == 0, "it waits longer than that already"
        assert throttle.hold(3) == 2
    assert trio.current_time() - began == 4
    assert not line.paused
