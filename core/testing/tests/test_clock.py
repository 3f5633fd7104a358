"""A clock that stands still."""

from magnetar.core.testing.clock import FixedClock


def test_both_times_move_together_and_only_when_told_to() -> None:
    clock = FixedClock(1000)
    assert (clock.monotonic(), clock.wall_ms()) == (clock.monotonic(), 1000)
    clock.forward(0.25)
    assert (clock.monotonic(), clock.wall_ms()) == (0.25, 1250)
