"""The second half of the fixed seeds."""

import pytest

from magnetar.bookie.tests.simulation.seeds import FURTHER, SEEDS, check, check_one, chunks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", chunks(SEEDS // 2 + 1, SEEDS + 1))
def test_the_invariants_hold(first):
    check(first)


@pytest.mark.parametrize("seed", FURTHER)
def test_the_invariants_hold_further_on(seed):
    check_one(seed)
