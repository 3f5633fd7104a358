"""Calls take virtual time, and keep those parts of the contract that need no second thread."""

import pytest
import trio

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_threads")

from magnetar.core.ports.tests import contract_threads as contract  # noqa: E402 (after the rewrite)
from magnetar.core.testing.simulation.timeline import Timeline  # noqa: E402
from magnetar.core.testing.simulation.virtual_threads import VirtualThreads  # noqa: E402

CHECKS = [
    contract.a_call_gives_its_result_or_its_error,
    contract.no_more_than_so_many_work_at_a_time,
    contract.threads_exclude_each_other_by_a_lock,
    contract.a_worker_asks_the_loop_and_waits,
    contract.calls_on_the_loop_come_in_order,
]


@pytest.fixture
def timeline(nursery):
    timeline = Timeline()
    nursery.start_soon(timeline.run)
    return timeline


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_contract(check, timeline, autojump_clock):
    with trio.fail_after(20):
        await check(VirtualThreads(timeline.host(), lambda: 0.01))


async def test_a_call_takes_time_and_is_abandoned_if_that_is_allowed(timeline, autojump_clock):
    threads, seen = VirtualThreads(timeline.host(), lambda: 2.0), []
    begun = trio.current_time()
    await threads.run(seen.append, 1)
    assert trio.current_time() == begun + 2.0
    with trio.move_on_after(0.5):
        await threads.workers(1, abandon=True).run(seen.append, 2)
    assert trio.current_time() == begun + 2.5
    with trio.move_on_after(0.5):
        await threads.workers(1).run(seen.append, 3)
    assert (trio.current_time(), seen) == (begun + 4.5, [1, 3])


async def test_a_started_thread_runs_once(timeline, autojump_clock):
    threads, seen = VirtualThreads(timeline.host(), lambda: 2.0), []
    threads.start(lambda: seen.append(1), "one").join()
    threads.start(lambda: seen.append(2), "two")
    assert seen == [1]
    await trio.sleep(3.0)
    assert seen == [1, 2]


async def test_nobody_waits_for_a_queue(timeline):
    with pytest.raises(NotImplementedError):
        VirtualThreads(timeline.host(), lambda: 1.0).queue()
