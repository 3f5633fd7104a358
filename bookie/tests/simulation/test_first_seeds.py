"""The first half of the fixed seeds."""

import pytest

from magnetar.bookie.tests.simulation.seeds import CHUNK, SEEDS, check

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", range(1, SEEDS // 2, CHUNK))
def test_the_invariants_hold(first):
    check(first)
