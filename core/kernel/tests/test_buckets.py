"""Where values are counted."""

from bisect import bisect_left

import pytest

from magnetar.core.kernel.buckets import bucket_of

BOUNDS = (1.0, 2.0, 5.0)


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0, 1.5, 2.0, 5.0, 5.1, 1e9])
def test_a_value_belongs_to_the_first_bucket_that_ends_at_it_or_behind_it(value: float) -> None:
    assert bucket_of(BOUNDS, value) == bisect_left(BOUNDS, value)


def test_without_bounds_there_is_one_bucket() -> None:
    assert bucket_of((), 3.0) == 0
