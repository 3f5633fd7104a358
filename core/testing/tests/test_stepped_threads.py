"""The fake keeps the contract of the port, and the same choices give the same run."""

import random
from queue import Empty

import pytest
import trio
import trio.testing

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_threads")

from magnetar.core.ports.tests.contract_threads import CHECKS  # noqa: E402 (after the rewrite)
from magnetar.core.testing.stepped_threads import open_stepped_threads  # noqa: E402


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_contract(check):
    with trio.fail_after(20):
        async with open_stepped_threads(random.Random(1).randrange) as threads:
            await check(threads)


async def order_of(seed):
    """In which three threads take their turns."""
    seen = []
    async with open_stepped_threads(random.Random(seed).randrange) as threads:

        def work(number):
            for _ in range(10):
                seen.append(number)
                threads.pause(0)

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(threads.run, work, number)
    return seen


async def test_the_same_choices_give_the_same_run(autojump_clock):
    runs = [await order_of(seed) for seed in (1, 1, 2)]
    assert sorted(runs[0]) == sorted([0, 1, 2] * 10)
    assert [sorted(run) for run in runs[:2]] == [sorted(runs[2])] * 2
    assert len({tuple(run) for run in runs}) >= 2, "others give another"


async def test_a_timeout_is_the_loops(autojump_clock):
    async with open_stepped_threads() as threads:
        queue = threads.queue()
        before = trio.current_time()
        with pytest.raises(Empty):
            await threads.run(lambda: queue.get(timeout=1000.0))
        assert trio.current_time() - before == pytest.approx(1000.0, abs=1)


async def test_no_thread_runs_beside_the_loop():
    async with open_stepped_threads() as threads:
        seen = []
        threads.start(lambda: seen.append(1), "thread")
        assert seen == []
        await trio.testing.wait_all_tasks_blocked(0.01)  # later than the turns are given
        assert seen == [1]


async def test_the_loop_may_join_a_thread_that_needs_nothing_of_it():
    async with open_stepped_threads() as threads:
        seen = []
        threads.start(lambda: (threads.pause(0), seen.append(1)), "thread").join()
        assert seen == [1]
