"""The second half of the fixed seeds."""

import pytest

from magnetar.bookie.tests.simulation.seeds import CHUNK, FURTHER, SEEDS, check, check_one

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", range(SEEDS // 2 + 1, SEEDS + 1, CHUNK))
def test_the_invariants_hold(first):
    check(first)


@pytest.mark.parametrize("seed", FURTHER)
def test_the_invariants_hold_further_on(seed):
    check_one(seed)
