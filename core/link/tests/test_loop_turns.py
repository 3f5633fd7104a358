"""When the link gives way to trio's other tasks, and how long a sweep lasts."""

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest
import trio
import trio.testing

from magnetar.core.link import loop
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.memory.pace import SWEEP_BYTES_MAX
from magnetar.core.link.tests.echo import Bench, receive_exactly, running
from magnetar.core.testing.clock import FixedClock


class Turns(trio.abc.Instrument):
    """Notes trio's turns among what else happens."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def after_io_wait(self, timeout: float) -> None:
        self.order.append("turn")


async def test_what_a_sweep_has_brought_under_way_is_awaited_without_a_turn_of_trio() -> None:
    """But only after a rest: what is always under way leaves trio its turns."""
    async with running() as bench, await bench.dial() as stream:
        ours, theirs = socket.socketpair()
        order: list[str] = []
        received = 0
        due = True

        def ended() -> None:
            ours.recv(1)
            order.append("ended")

        def begin() -> None:
            """What is heard begins a write, which ends at once."""
            nonlocal received
            if received != bench.link.statistics().bytes_received:
                received = bench.link.statistics().bytes_received
                order.append("begun")
                theirs.send(b"1")

        async def say_and_hear() -> str:
            """What came first after the write was begun."""
            order.clear()
            await stream.send_all(b"a\n")
            assert await receive_exactly(stream, 2) == b"a\n"
            while "ended" not in order:
                await trio.lowlevel.checkpoint()
            return order[order.index("begun") + 1]

        trio.lowlevel.add_instrument(Turns(order))
        bench.link.watch(ours.fileno(), ended, lambda: due)
        bench.backend.at_dispatch = begin
        assert await say_and_hear() == "ended"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(always_ready)
            assert await say_and_hear() == "turn"
            due = False
            assert await say_and_hear() == "turn"
            nursery.cancel_scope.cancel()
        ours.close()
        theirs.close()


async def always_ready() -> None:
    """A task that may run in every turn of trio."""
    while True:
        await trio.lowlevel.checkpoint()


async def order_of_three(
    bench: Bench, stream: trio.SocketStream, at_first: Callable[[], object] = lambda: None
) -> list[str]:
    """Three lines, of which the second and the third are sent when one has been received. Their
    peer does not wait in this trio meanwhile.
    """
    order: list[str] = []
    three = trio.Event()
    received = bench.link.statistics().bytes_received

    def send_the_next() -> None:
        lines = (bench.link.statistics().bytes_received - received) // 2
        if lines > order.count("line"):
            order.append("line")
            if lines == 1:
                at_first()
            if lines < 3:
                os.write(stream.socket.fileno(), b"a\n")
            else:
                three.set()

    turns = Turns(order)
    trio.lowlevel.add_instrument(turns)
    bench.backend.at_dispatch = send_the_next
    os.write(stream.socket.fileno(), b"a\n")  # `send_all` ends with a checkpoint
    await three.wait()
    await receive_exactly(stream, 6)
    trio.lowlevel.remove_instrument(turns)
    return order[order.index("line") : order.index("line") + 3]


async def test_who_sends_at_once_after_each_reply_is_awaited_without_a_turn_of_trio() -> None:
    """Unless another task is ready to run."""
    async with running() as bench, await bench.dial() as stream, trio.open_nursery() as nursery:
        bench.link.clock = FixedClock()  # whatever is done takes no time
        assert await order_of_three(bench, stream) == ["line", "line", "line"]
        nursery.start_soon(always_ready)
        assert await order_of_three(bench, stream) == ["line", "turn", "line"]
        nursery.cancel_scope.cancel()


class StepClock(FixedClock):
    """Each look at it takes a step."""

    def __init__(self, step_seconds: float) -> None:
        super().__init__()
        self._step_seconds = step_seconds

    def monotonic(self) -> float:
        self.forward(self._step_seconds)
        return super().monotonic()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the link cannot ask")
async def test_after_a_while_the_link_gives_way_if_something_has_come_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or after a longer one, as others may have a deadline."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with running() as bench, await bench.dial() as stream, trio.open_nursery() as nursery:
            bench.link.clock = StepClock(loop.TURN_SECONDS * 0.6)  # a sweep looks at it twice
            assert await order_of_three(bench, stream) == ["line", "line", "line"]
            nursery.start_soon(trio.lowlevel.wait_readable, ours)
            await trio.testing.wait_all_tasks_blocked()
            assert await order_of_three(bench, stream) == ["line", "line", "line"]
            came = await order_of_three(bench, stream, lambda: theirs.send(b"x"))
            assert came == ["line", "line", "turn"]
            monkeypatch.setattr(loop, "TURN_SECONDS_MAX", loop.TURN_SECONDS)
            assert await order_of_three(bench, stream) == ["line", "line", "turn"]


@pytest.mark.parametrize("slow", [True, False])
async def test_who_is_ready_waits_for_the_next_sweep_while_serving_is_slow(
    monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """So that no sweep lasts long; of forty that are ready at once, all are served."""
    async with running() as bench, contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await bench.dial()) for _ in range(40)]
        for stream in streams:
            await stream.send_all(b"a\n")
            await receive_exactly(stream, 2)
        served: list[int] = []
        before = bench.link.statistics().bytes_received

        def note() -> None:
            served.append((bench.link.statistics().bytes_received - before) // 2)

        bench.link.clock = StepClock(2 * loop.SERVED_SECONDS * slow)
        bench.backend.at_dispatch = note
        for stream in streams:
            os.write(stream.socket.fileno(), b"b\n")
        for stream in streams:
            assert await receive_exactly(stream, 2) == b"b\n"
        most = max(now - last for last, now in pairwise([0, *served]))
        assert most == (loop.SERVED_UNSEEN if slow else 40)
        assert (bench.link._pace.bytes < SWEEP_BYTES_MAX) == slow, "less of each, the next time"


async def test_who_always_has_more_does_not_keep_others_from_their_turn() -> None:
    """The kernel names those that stay ready in one order, and sweeps that are slow end early."""
    limits = LinkLimits(receive_bytes=1024)
    async with running(limits) as bench, contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await bench.dial()) for _ in range(20)]
        for stream in streams:
            await stream.send_all(b"a\n")
            await receive_exactly(stream, 2)
        bench.link.clock = StepClock(2 * loop.SERVED_SECONDS)
        greedy, others = streams[: loop.SERVED_UNSEEN], streams[loop.SERVED_UNSEEN :]
        for stream in greedy:
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(stream.socket.fileno(), b"a\n" * 32_000)
        before = bench.link.statistics()
        for stream in others:
            os.write(stream.socket.fileno(), b"b\n")
        for stream in others:
            assert await receive_exactly(stream, 2) == b"b\n"
        now = bench.link.statistics()
        assert now.sweeps - before.sweeps < 40


async def test_who_leaves_slowly_is_the_last_of_a_sweep() -> None:
    """A client with 10,000 subscriptions takes 50 ms to forget; 24 at once took more than 1 s."""
    async with running() as bench, contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await bench.dial()) for _ in range(5)]
        for stream in streams:
            await stream.send_all(b"a\n")
            await receive_exactly(stream, 2)
        after_sweeps = [0]
        bench.link.clock = StepClock(2 * loop.SERVED_SECONDS)
        bench.backend.at_dispatch = lambda: after_sweeps.append(len(bench.events))
        for stream in streams:
            stream.socket.close()
        while len(bench.events) < 5:
            await trio.lowlevel.checkpoint()
        assert max(now - before for before, now in pairwise([*after_sweeps, 5])) == 1
