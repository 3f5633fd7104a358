"""This system's threads keep the contract of the port."""

import threading

import pytest
import trio

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_threads")

from magnetar.bookie.machine.threads import SystemThreads  # noqa: E402 (after the rewrite)
from magnetar.core.ports.tests.contract_threads import CHECKS  # noqa: E402


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_contract(check):
    with trio.fail_after(20):
        await check(SystemThreads())


async def test_a_thread_has_its_name_and_keeps_no_process_alive():
    seen = []
    thread = SystemThreads().start(lambda: seen.append(threading.current_thread()), "journal")
    await trio.to_thread.run_sync(thread.join)
    assert (seen[0].name, seen[0].daemon) == ("journal", True)


def test_a_call_to_a_loop_that_is_over_is_forgotten():
    made = []

    async def main():
        made.append(SystemThreads())

    trio.run(main)
    made[0].call_soon(pytest.fail, "nobody hears this")
