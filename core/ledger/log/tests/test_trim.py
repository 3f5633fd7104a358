import pytest

from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.log.trim import (
    MEGABYTE,
    MINUTE_MS,
    RollLimits,
    beyond,
    effective,
    should_roll,
    trimmable,
)
from magnetar.core.policy.values import LedgerLimits, LogLimits, Retention

LIMITS = RollLimits(entries_max=100, bytes_max=1000, age_ms_min=10, age_ms_max=50)
NOW_MS = 1000 * MINUTE_MS
NONE, FOR_EVER = Retention(0, 0), Retention(-1, -1)


@pytest.mark.parametrize(
    ("entries", "size", "age_ms", "rolls"),
    [
        (100, 0, 10, True),
        (99, 999, 49, False),
        (1, 1000, 10, True),
        (100, 1000, 9, False),  # a burst does not make thousands of ledgers
        (1, 1, 50, True),
        (0, 0, 500, False),  # nothing in it: go on
    ],
)
def test_when_a_ledger_is_full(entries: int, size: int, age_ms: int, rolls: bool) -> None:
    assert should_roll(LIMITS, entries, size, age_ms) is rolls


def chain(*ages_minutes: int) -> list[Segment]:
    """Ledgers 1, 2, ... of ten entries and a megabyte, closed so long ago, and an open one."""
    closed = [
        Segment(i, 0, 10, MEGABYTE, NOW_MS - age * MINUTE_MS)
        for i, age in enumerate(ages_minutes, 1)
    ]
    return [*closed, Segment(len(closed) + 1, 0, 10, MEGABYTE, 0)]


@pytest.mark.parametrize(
    ("needed_from", "retention", "doomed"),
    [
        ((4, 10), NONE, [1, 2, 3]),  # the open one stays, whatever is acknowledged
        ((9, 0), NONE, [1, 2, 3]),
        ((2, 9), NONE, [1]),  # the last entry of ledger 2 is still needed
        ((2, 10), NONE, [1, 2]),
        ((1, 0), NONE, []),
        ((4, 10), FOR_EVER, []),
        ((4, 10), Retention(25, -1), [1, 2]),
        ((2, 0), Retention(25, -1), [1]),
        ((4, 10), Retention(40, -1), []),
        ((4, 10), Retention(-1, 3), [1]),  # four megabytes, three may stay
        ((4, 10), Retention(-1, 100), []),
        ((4, 10), Retention(25, 100), [1, 2]),  # the limit reached first counts
        ((4, 10), Retention(1000, 2), [1, 2]),
    ],
)
def test_which_ledgers_go(needed_from: Position, retention: Retention, doomed: list[int]) -> None:
    assert trimmable(chain(30, 25, 20), needed_from, retention, NOW_MS) == doomed


def test_ledgers_go_in_order_only() -> None:
    """A young ledger keeps the old ones behind it: the chain has no holes."""
    assert trimmable(chain(1, 500, 500), (4, 10), Retention(60, -1), NOW_MS) == []


def test_nothing_of_nothing() -> None:
    assert trimmable([], (0, 0), NONE, NOW_MS) == []


@pytest.mark.parametrize(
    ("limits", "doomed"),
    [
        (LogLimits(), []),
        (LogLimits(age_ms=25 * MINUTE_MS), [1, 2]),
        (LogLimits(age_ms=0), [1, 2, 3]),
        (LogLimits(size_bytes=3 * MEGABYTE), [1]),
        (LogLimits(size_bytes=3 * MEGABYTE + 1), []),
        (LogLimits(size_bytes=0), [1, 2, 3]),
        (LogLimits(25 * MINUTE_MS, 4 * MEGABYTE), [1, 2]),
    ],
)
def test_what_is_beyond_the_limits_goes(limits: LogLimits, doomed: list[int]) -> None:
    assert beyond(chain(40, 30, 20), limits, NOW_MS) == doomed


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, RollLimits()),
        (LedgerLimits(size_bytes=5), RollLimits(bytes_max=5, age_ms_min=1000)),
        (LedgerLimits(age_ms=MINUTE_MS), RollLimits(age_ms_min=1000, age_ms_max=MINUTE_MS)),
        (LedgerLimits(7, 100), RollLimits(bytes_max=7, age_ms_min=100, age_ms_max=100)),
    ],
)
def test_limits_that_were_asked_for(policy: LedgerLimits | None, expected: RollLimits) -> None:
    assert effective(RollLimits(), policy) == expected


@pytest.mark.parametrize(
    ("policy", "lag_ms", "age_ms"),
    [
        (None, -1, 240 * MINUTE_MS),
        (None, 5, 5),
        (None, 1000 * MINUTE_MS, 240 * MINUTE_MS),
        (LedgerLimits(age_ms=100), 5, 5),
        (LedgerLimits(age_ms=100), 500, 100),
        (LedgerLimits(size_bytes=7), 500, 500),
    ],
)
def test_what_is_to_be_compacted_ends_in_time(
    policy: LedgerLimits | None, lag_ms: int, age_ms: int
) -> None:
    found = effective(RollLimits(), policy, lag_ms)
    assert found.age_ms_max == age_ms
    assert should_roll(found, 1, 1, age_ms)
    assert not should_roll(found, 1, 1, age_ms - 1)
