"""A seed repeats a run, and runs come by what may go wrong."""

import os
import subprocess
import sys

import pytest

from magnetar.bookie.tests.simulation.world import simulated


def test_a_seed_gives_the_same_trace_in_any_process():
    here = simulated(3)
    assert simulated(3).lines == here.lines
    code = (
        "from magnetar.core.native.sources import prefer_sources; prefer_sources('a test')\n"
        "from magnetar.bookie.tests.simulation.world import simulated\n"
        "print(simulated(3).fingerprint)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "54321"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    assert found.stdout.strip() == here.fingerprint


@pytest.mark.slow
def test_runs_come_by_all_that_may_go_wrong():
    """Without that nothing would be proved."""
    lines = [line for seed in range(1, 21) for line in simulated(seed).lines]
    for what in (
        "loses power", "is killed", "is frozen", "nothing passes", "lose their connection",
        "the metadata store stalls", "an ambush", "has recovered", "recovery add", "fenced",
        "dies", "CLOSED", "IN_RECOVERY", "has rot", "has lost its disk", "cannot recover",
        "has stopped", "the session of", "sees", "loses [", "everything is whole",
        "is deleted", "drops ledger", "deletes", "is marked", "is to forget a fence",
        "is unmarked", "replaces bookie",
        "answer late", "97% full", "read-only", "explicit LAC", "tells LAC", "has heard",
        "hears the explicit LAC", "the session of tail",
        "the session of repairer", "the session of writer", "the session of bookie",
    ):  # fmt: skip
        assert any(what in line for line in lines), f"never: {what}"
