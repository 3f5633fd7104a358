"""Each mistake that is put into the code is found, by the seeds that are run without it."""

import pytest

from magnetar.bookie.tests.simulation.mutants import HISTORIC, MUTANTS, mutated
from magnetar.bookie.tests.simulation.world import simulated

SEEDS_MAX = 300
"""Those of CI. Most mistakes are found by one of the first five, the rarest by one of 150."""

SOONER = {
    "an_ack_of_a_replaced_bookie_counts": 89,
    "an_auditor_looks_at_last_segments_only": 48,
    "one_bookie_too_few_is_fenced": 55,
}
"""Seeds that find rare ones, and are run first."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_is_found(name):
    with mutated(name):
        for seed in (SOONER.get(name, 1), *range(1, SEEDS_MAX + 1)):
            violation = simulated(seed).violation
            if violation is not None:
                # An exception would be found whatever the mistake is: it must be an invariant.
                assert "an error that nobody expects" not in violation
                return
    pytest.fail(f"{SEEDS_MAX} seeds do not find that {name.replace('_', ' ')}")


def test_the_historic_ones_are_there_and_ten_of_our_own():
    assert set(HISTORIC) < set(MUTANTS)
    assert len(MUTANTS) >= len(HISTORIC) + 10
