"""The fixed seeds of CI, for the modules of tests that run them: each module is one worker's."""

from magnetar.bookie.tests.simulation.world import simulated

SEEDS = 300
FURTHER = (452,)
"""Run as well: each is the first that finds one of the mistakes of `test_mutants.py`."""
CHUNK = 5
"""Seeds of one test."""


def check(first):
    """Run a chunk of seeds. One that fails is replayed with `make sim SEED=N`."""
    for seed in range(first, first + CHUNK):
        check_one(seed)


def check_one(seed):
    outcome = simulated(seed)
    assert outcome.violation is None, f"seed {seed}: {outcome.violation}"
    assert outcome.ledgers, f"seed {seed} does nothing"
