"""Replays one seed with its trace, or runs new seeds for hours.

python -m magnetar.bookie.tests.simulation 7            its trace, and whether it is fine
python -m magnetar.bookie.tests.simulation 7 --mutant the_lac_has_no_floor
python -m magnetar.bookie.tests.simulation --soak 3600  prints each seed that fails
"""

import multiprocessing
import os
import time
from contextlib import nullcontext

import click

from magnetar.core.native.sources import prefer_sources

prefer_sources("the simulator replaces parts of modules")

from magnetar.bookie.tests.simulation.mutants import MUTANTS, mutated  # noqa: E402 (sources first)
from magnetar.bookie.tests.simulation.world import simulated  # noqa: E402


def replay(seed, mutant):
    with mutated(mutant) if mutant else nullcontext():
        outcome = simulated(seed)
    for line in outcome.lines:
        click.echo(line)
    click.echo(f"seed {seed}: {outcome.violation or 'fine'}; trace {outcome.fingerprint}")
    return 0 if outcome.violation is None else 1


def soak(seconds, first):
    """Seeds from `first` on, by all cores."""
    end, count, failed = time.monotonic() + seconds, 0, []
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=50) as pool:
        for seed, violation in pool.imap_unordered(_violation, range(first, 2**40)):
            count += 1
            if violation is not None:
                failed.append(seed)
                click.echo(f"seed {seed} fails: {violation}")
            elif count % 100 == 0:
                click.echo(f"{count} seeds up to {seed}; {len(failed)} fail")
            if time.monotonic() > end:
                pool.terminate()
                break
    click.echo(f"{count} seeds from {first} on; these fail: {failed or 'none'}")
    return 1 if failed else 0


def _violation(seed):
    outcome = simulated(seed)
    return seed, outcome.violation


@click.command()
@click.argument("seed", type=int, required=False)
@click.option("--mutant", type=click.Choice(sorted(MUTANTS)))
@click.option("--soak", "seconds", type=float, help="Run new seeds for so many seconds.")
@click.option("--first", type=int, default=100_000, help="The first seed of a soak.")
def main(seed, mutant, seconds, first):
    """Run the simulator."""
    if seed is not None:
        raise SystemExit(replay(seed, mutant))
    raise SystemExit(soak(seconds or 3600.0, first))


if __name__ == "__main__":
    main()
