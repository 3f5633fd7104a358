"""Calls of threads are made in sweeps, and none is lost when the link ends."""

import os
import socket
import threading

import pytest
import trio
import trio.testing

from magnetar.core.link.readiness.poller import READ, new_poller
from magnetar.core.link.readiness.thread_calls import CallsInSweeps
from magnetar.core.link.tests.echo import Bench, receive_exactly, running

rings = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="this system has no eventfd(2)")


def in_a_thread(call: object) -> None:
    thread = threading.Thread(target=call)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_none_is_accepted_while_the_link_does_not_run() -> None:
    calls, poller, made = CallsInSweeps(), new_poller(), []
    assert not calls.call(lambda: made.append("before"))
    calls.begin(poller)
    calls.end()
    assert not calls.call(lambda: made.append("behind"))
    assert made == []
    poller.close()


@rings
def test_what_is_accepted_is_made_once_and_in_order() -> None:
    calls, poller, made = CallsInSweeps(), new_poller(), []
    bell = calls.begin(poller)
    for number in range(3):
        in_a_thread(lambda number=number: calls.call(lambda: made.append(number)))
    assert poller.ready(0, 8) == [(bell, READ)]
    calls.make()
    assert made == [0, 1, 2]
    assert poller.ready(0, 8) == []
    calls.make_waiting()
    in_a_thread(lambda: calls.call(lambda: made.append(3)))
    assert made == [0, 1, 2]
    calls.make_waiting()
    assert made == [0, 1, 2, 3]
    calls.make()
    in_a_thread(lambda: calls.call(lambda: made.append(4)))
    calls.end()
    assert made == [0, 1, 2, 3, 4], "the last ones are made when the link ends"
    poller.close()


@rings
def test_one_that_fails_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    calls, poller, made = CallsInSweeps(), new_poller(), []
    calls.begin(poller)
    calls.call(lambda: 1 // 0)
    calls.call(lambda: made.append("next"))
    calls.end()
    assert made == ["next"]
    assert "a call of a thread failed" in caplog.text
    poller.close()


def test_what_cannot_be_heard_is_not_polled_for() -> None:
    calls = CallsInSweeps()
    calls.expected += 1
    assert not calls.are_expected()


@rings
def test_the_number_of_the_bell_may_belong_to_others_afterwards() -> None:
    calls, poller = CallsInSweeps(), new_poller()
    bell = calls.begin(poller)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        calls.end()
        os.dup2(ours.fileno(), bell)
        assert not calls.call(lambda: None)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(8)
        os.close(bell)
    poller.close()


@rings
async def test_what_a_call_causes_is_sent_at_the_end_of_its_sweep() -> None:
    """Without a turn of trio, although the link polls for the next request of a peer."""
    async with running() as bench, await bench.dial() as stream:
        sweeps: list[int] = []

        def called() -> None:
            sweeps.append(bench.link.statistics().sweeps)

        def ask() -> None:
            assert bench.link.thread_calls.call(called)

        await stream.send_all(b"a\n")
        assert await receive_exactly(stream, 2) == b"a\n"
        before = bench.link.statistics().sweeps
        await trio.to_thread.run_sync(ask)
        while not sweeps:
            await trio.lowlevel.checkpoint()
        assert sweeps[0] > before


@rings
async def test_one_that_is_expected_is_polled_for() -> None:
    async with running() as bench:
        await trio.testing.wait_all_tasks_blocked()
        assert not expected(bench)
        bench.link.thread_calls.expected += 1
        assert expected(bench)
        bench.link.thread_calls.expected -= 1
        assert not expected(bench)


def expected(bench: Bench) -> bool:
    return bench.link.thread_calls.are_expected()
