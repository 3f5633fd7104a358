"""Each mistake that is put into the code is found, by the seeds that are run without it."""

import pytest

from magnetar.bookie.tests.simulation.mutants import HISTORIC, MUTANTS, mutated
from magnetar.bookie.tests.simulation.seeds import FURTHER, SEEDS
from magnetar.bookie.tests.simulation.world import simulated

SOONER = {
    "an_add_is_acknowledged_before_it_is_durable": 26,
    "a_mark_passes_what_is_in_memory": 170,
    "adds_are_done_during_a_change": 53,
    "a_vote_stays_when_its_term_is_over": 97,
    "damage_is_taken_for_absence": 45,
    "an_old_log_is_unlinked_before_the_new_index_is_durable": 127,
    "the_row_of_a_deleted_ledger_goes_first": 11,
    "the_lac_has_no_floor": 14,
    "one_bookie_too_few_is_fenced": 192,
    "a_recovery_reads_from_the_ensemble_it_has_made": 28,
    "an_ack_of_a_replaced_bookie_counts": 9,
    "an_auditor_looks_at_last_segments_only": 452,
    "an_auditor_reads_no_entries_between_the_first_and_the_last": 19,
    "a_worker_looks_for_nothing_that_a_mark_tells_of": 45,
    "an_explicit_lac_is_answered_before_it_is_durable": 16,
    "acks_outlive_a_change_of_the_ensemble": 7,
}
"""Seeds that find rarer ones, and are run first."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_is_found(name):
    with mutated(name):
        for seed in (SOONER.get(name, 1), *range(1, SEEDS + 1)):
            violation = simulated(seed).violation
            if violation is not None:
                # An exception would be found whatever the mistake is: it must be an invariant.
                assert "an error that nobody expects" not in violation
                return
    pytest.fail(f"{SEEDS} seeds do not find that {name.replace('_', ' ')}")


def test_seeds_that_find_one_are_run_without_it_too():
    assert {seed for seed in SOONER.values() if seed > SEEDS} == set(FURTHER)


def test_the_historic_ones_are_there_and_ten_of_our_own():
    assert set(HISTORIC) < set(MUTANTS)
    assert len(MUTANTS) >= len(HISTORIC) + 10
