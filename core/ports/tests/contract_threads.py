"""What all Threads must do. Implementations run `CHECKS`, each in a loop of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from queue import Empty

import pytest
import trio

from magnetar.core.ports.threads import Threads

Check = Callable[[Threads], Awaitable[None]]


async def a_call_gives_its_result_or_its_error(threads: Threads) -> None:
    assert await threads.run(pow, 2, 10) == 1024
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)
    workers = threads.workers(2)
    assert await workers.run(pow, 2, 3) == 8
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 1, 0)


async def no_more_than_so_many_work_at_a_time(threads: Threads) -> None:
    workers, running, most = threads.workers(2), [], []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        for _ in range(3):
            threads.pause(0.0001)
        running.pop()

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(workers.run, work)
    assert len(most) == 8
    assert max(most) <= 2


async def a_thread_gets_what_the_loop_puts_in_order(threads: Threads) -> None:
    queue, seen, over = threads.queue(), [], trio.Event()

    def work() -> None:
        while (item := queue.get()) is not None:
            seen.append(item)
        threads.call_soon(over.set)

    assert queue.empty()
    thread = threads.start(work, "reader")
    for number in range(100):
        queue.put(number)
    queue.put(None)
    await over.wait()
    await threads.run(thread.join)
    assert seen == list(range(100))
    assert queue.empty()


async def what_does_not_come_is_not_waited_for_longer(threads: Threads) -> None:
    queue = threads.queue()

    def work() -> bool:
        try:
            queue.get(timeout=0.001)
        except Empty:
            return True
        return False

    assert await threads.run(work)


async def threads_exclude_each_other_by_a_lock(threads: Threads) -> None:
    lock, inside, most = threads.lock(), [], []

    def work() -> None:
        for _ in range(5):
            with lock:
                inside.append(1)
                most.append(len(inside))
                threads.pause(0.0001)
                inside.pop()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(threads.run, work)
    assert most == [1] * 15


async def a_worker_asks_the_loop_and_waits(threads: Threads) -> None:
    task = trio.lowlevel.current_task()
    on_loop: list[bool] = []

    def question(number: int) -> int:
        on_loop.append(trio.lowlevel.in_trio_run())
        return number + 1

    assert await threads.run(threads.call_and_wait, question, 1) == 2
    assert on_loop == [True]
    assert trio.lowlevel.current_task() is task


async def calls_on_the_loop_come_in_order(threads: Threads) -> None:
    seen: list[int] = []

    def work() -> None:
        for number in range(50):
            threads.call_soon(seen.append, number)

    await threads.run(work)
    while len(seen) < 50:
        await trio.lowlevel.checkpoint()
    assert seen == list(range(50))


async def a_thread_can_be_joined_by_another(threads: Threads) -> None:
    seen: list[str] = []

    def first() -> None:
        threads.pause(0.0001)
        seen.append("first")

    def second() -> None:
        threads.start(first, "first").join()
        seen.append("second")

    await threads.run(second)
    assert seen == ["first", "second"]


async def a_started_call_is_not_cancelled_unless_abandoned(threads: Threads) -> None:
    ended: list[str] = []
    queue = threads.queue()

    def work() -> None:
        threads.pause(0.0001)
        ended.append("whole")

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(threads.run, work)
            await trio.lowlevel.checkpoint()
            scope.cancel()
    assert ended in ([], ["whole"]), "not begun, or whole"
    with trio.move_on_after(0.01):
        await threads.workers(1, abandon=True).run(queue.get)
    queue.put(None)


CHECKS: list[Check] = [
    a_call_gives_its_result_or_its_error,
    no_more_than_so_many_work_at_a_time,
    a_thread_gets_what_the_loop_puts_in_order,
    what_does_not_come_is_not_waited_for_longer,
    threads_exclude_each_other_by_a_lock,
    a_worker_asks_the_loop_and_waits,
    calls_on_the_loop_come_in_order,
    a_thread_can_be_joined_by_another,
    a_started_call_is_not_cancelled_unless_abandoned,
]
