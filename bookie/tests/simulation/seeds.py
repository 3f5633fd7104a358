"""The fixed seeds of CI, for the modules of tests that run them: each module is one worker's."""

from magnetar.bookie.tests.simulation.world import simulated

SEEDS = 300
CHUNK = 5
"""Seeds of one test."""


def check(first):
    """Run a chunk of seeds. One that fails is replayed with `make sim SEED=N`."""
    for seed in range(first, first + CHUNK):
        outcome = simulated(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"
        assert outcome.ledgers, f"seed {seed} does nothing"
