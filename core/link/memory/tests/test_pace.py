"""Sweeps that take long are followed by smaller ones, and those by larger ones; the longest one."""

import random

import pytest

from magnetar.core.link.memory import pace
from magnetar.core.link.memory.pace import (
    QUICK_SECONDS,
    SHARE_BYTES_LEAST,
    SHARE_BYTES_MIN,
    SLOW_SECONDS,
    SWEEP_BYTES_MAX,
    SWEEP_BYTES_MIN,
    LongestSweep,
    Pace,
)


@pytest.mark.parametrize(
    ("connections", "share"),
    [(0, SWEEP_BYTES_MAX), (1, SWEEP_BYTES_MAX), (4, SWEEP_BYTES_MAX // 4), (64, SHARE_BYTES_MIN)],
)
def test_each_has_its_share(connections: int, share: int) -> None:
    assert Pace().share(connections) == share


def test_half_after_a_slow_one_and_all_again_after_quick_ones() -> None:
    pace = Pace()
    pace.adjust(SLOW_SECONDS * 1.1)
    assert pace.share(1) == SWEEP_BYTES_MAX // 2
    assert pace.share(64) == SHARE_BYTES_MIN // 2
    pace.adjust(SLOW_SECONDS * 0.9)
    assert pace.share(1) == SWEEP_BYTES_MAX // 2, "neither slow nor quick"
    pace.adjust(QUICK_SECONDS * 0.9)
    assert pace.share(1) == SWEEP_BYTES_MAX
    assert pace.share(64) == SHARE_BYTES_MIN


def test_less_after_one_that_a_few_have_filled() -> None:
    pace = Pace()
    for _ in range(10):
        pace.adjust(QUICK_SECONDS * 0.9, filled_by_few=True)
    assert pace.share(64) == SHARE_BYTES_LEAST


def test_never_nothing_and_never_more_than_at_first() -> None:
    pace, dice = Pace(), random.Random(7)
    for _ in range(2_000):
        pace.adjust(dice.choice([0.0, 1.0]))
        assert SWEEP_BYTES_MIN <= pace.bytes <= SWEEP_BYTES_MAX
        assert SHARE_BYTES_LEAST <= pace.share_min <= SHARE_BYTES_MIN
    for _ in range(20):
        pace.adjust(0.0)
    assert (pace.bytes, pace.share_min) == (SWEEP_BYTES_MAX, SHARE_BYTES_MIN)


def test_what_takes_as_long_as_it_has_bytes_ends_near_the_bound() -> None:
    """Forty microseconds for a hundred bytes, as a question may cost that is answered alone."""
    pace = Pace()
    for _ in range(20):
        pace.adjust(pace.share(1) / 100 * 40e-6)
    assert pace.share(1) / 100 * 40e-6 <= SLOW_SECONDS


def test_time_in_which_others_run_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = iter([1.0, 1.25, 2.0, 2.125, 3.0])
    monkeypatch.setattr(pace, "thread_seconds", lambda: next(own))
    longest = LongestSweep()
    for seconds in (0.5, 4.0, 0.125):
        longest.begin()
        longest.end(seconds)  # the last one cannot be longer: nobody asks
    assert longest.seconds == 4.0
    assert longest.own_seconds == 0.25


def test_a_sweep_of_this_thread_takes_cpu_time() -> None:
    longest = LongestSweep()
    longest.begin()
    assert sum(range(10_000))
    longest.end(60.0)
    assert 0 < longest.own_seconds < 60.0
