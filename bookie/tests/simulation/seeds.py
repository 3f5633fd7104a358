"""The fixed seeds of CI, for the modules of tests that run them: each module is one worker's."""

from typing import Any

import pytest

from magnetar.bookie.tests.simulation.world import simulated

SEEDS = 300
FURTHER = (452,)
"""Run as well: each is the first that finds one of the mistakes of `test_mutants.py`."""
CHUNK = 5
"""Seeds of one test."""
EACH = 3
"""One test of so many runs with every change, the others by name: `-m heavy`."""


def chunks(first: int, end: int) -> list[Any]:
    """The first seeds of the tests."""
    return [
        pytest.param(begin, marks=[pytest.mark.heavy] if number % EACH else [])
        for number, begin in enumerate(range(first, end, CHUNK))
    ]


def check(first):
    """Run a chunk of seeds. One that fails is replayed with `make sim SEED=N`."""
    for seed in range(first, first + CHUNK):
        check_one(seed)


def check_one(seed):
    outcome = simulated(seed)
    assert outcome.violation is None, f"seed {seed}: {outcome.violation}"
    assert outcome.ledgers, f"seed {seed} does nothing"
