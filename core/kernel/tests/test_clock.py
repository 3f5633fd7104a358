"""The one place where it is asked what time it is."""

from magnetar.core.kernel.clock import Clock, SystemClock
from magnetar.core.testing.clock import FixedClock


def test_the_real_clock_goes_on() -> None:
    clock: Clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall_ms() > 1_700_000_000_000


def test_the_fixed_one_when_told_to() -> None:
    clock = FixedClock(1000)
    clock.forward(1.5)
    assert (clock.monotonic(), clock.wall_ms()) == (1.5, 2500)
