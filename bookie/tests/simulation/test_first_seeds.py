"""The first half of the fixed seeds."""

import pytest

from magnetar.bookie.tests.simulation.seeds import SEEDS, check, chunks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", chunks(1, SEEDS // 2))
def test_the_invariants_hold(first):
    check(first)
