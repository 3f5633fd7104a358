"""How often one consumer may attach."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.errors import Overloaded
from magnetar.core.kernel.throttle import UNLIMITED, RateLimit
from magnetar.core.testing.clock import FixedClock
from magnetar.core.topic.subscription import subscribe_rate
from magnetar.core.topic.subscription.subscribe_rate import Subscribers

ME, YOU = ("1.2.3.4", "c", 1), ("1.2.3.4", "c", 2)


async def test_a_short_wait_is_waited_and_a_long_one_refused(autojump_clock: MockClock) -> None:
    admitted, clock, limit = Subscribers(), FixedClock(), RateLimit(2, 0, 10)
    started = trio.current_time()
    await admitted.admit(ME, limit, clock)
    await admitted.admit(ME, limit, clock)
    assert trio.current_time() == started
    await admitted.admit(YOU, limit, clock)  # each has a rate of its own
    await admitted.admit(ME, limit, clock)
    assert trio.current_time() > started
    await admitted.admit(ME, limit, clock)
    with pytest.raises(Overloaded, match="too often"):
        await admitted.admit(ME, limit, clock)
    clock.forward(100)
    await admitted.admit(ME, limit, clock)


async def test_without_a_limit_nobody_is_remembered() -> None:
    admitted, clock = Subscribers(), FixedClock()
    await admitted.admit(ME, RateLimit(1), clock)
    await admitted.admit(ME, UNLIMITED, clock)
    assert not admitted._throttles


async def test_those_remembered_have_an_end() -> None:
    admitted, clock = Subscribers(), FixedClock()
    for number in range(subscribe_rate.REMEMBERED_MAX + 5):
        await admitted.admit(("host", "c", number), RateLimit(1), clock)
    assert len(admitted._throttles) == subscribe_rate.REMEMBERED_MAX
