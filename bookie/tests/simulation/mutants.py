"""Mistakes that the simulator must find: historic ones, and plausible ones of our own."""

from magnetar.bookie.tests.simulation import bookie_mutants, client_mutants, repair_mutants
from magnetar.bookie.tests.simulation.mutation import MUTANTS, mutated

__all__ = ["HISTORIC", "MUTANTS", "mutated"]

MODULES = (client_mutants, bookie_mutants, repair_mutants)
"""What has them."""
HISTORIC = ("recovery_reads_do_not_fence", "the_lac_has_no_floor", "a_fence_is_lost_in_a_crash")
