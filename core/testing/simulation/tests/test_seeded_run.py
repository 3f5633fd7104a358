"""The same seed gives the same run: within a process, and in another one."""

import os
import subprocess
import sys

import trio

from magnetar.core.testing.simulation.seeded_run import simulate


async def race(run):
    """Tasks whose order only the scheduler decides."""

    async def step(name):
        for _ in range(3):
            run.trace.note(f"{name} {run.chance(name).randrange(100)}")
            await trio.lowlevel.checkpoint()
        await trio.sleep(10.0)

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c", "d"):
            nursery.start_soon(step, name)
    run.trace.note(f"{run.clock.monotonic()} {run.clock.wall_ms()}")
    return run.trace.fingerprint


def test_the_same_seed_gives_the_same_trace():
    assert simulate(race, 1) == simulate(race, 1)
    assert len({simulate(race, seed) for seed in range(5)}) > 1


def test_another_process_gives_it_too():
    code = (
        "from magnetar.core.testing.simulation.tests.test_seeded_run import race, simulate\n"
        "print(simulate(race, 7))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    assert found.stdout.strip() == simulate(race, 7)


def test_time_takes_no_time():
    async def wait(run):
        await trio.sleep(80_000.0)
        return run.clock.monotonic()

    assert simulate(wait, 1) == 80_000.0


def test_parts_have_a_chance_of_their_own():
    async def draw(run):
        one, other = run.chance("one"), run.chance("other")
        first = one.random()
        other.random()
        return first, run.chance("one").random()

    first, again = simulate(draw, 3)
    assert first == again


def test_the_clock_makes_the_calls_of_the_timeline():
    async def wait(run):
        seen = []
        run.timeline.call_in(1.0, lambda: seen.append(trio.current_time()))
        run.timeline.call_in(3.0, lambda: seen.append(trio.current_time()))
        await trio.sleep(2.0)
        return seen, trio.current_time()

    assert simulate(wait, 1) == ([1.0], 2.0)
