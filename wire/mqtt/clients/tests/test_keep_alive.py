"""Silent clients, and those that only look silent."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.testing.clock import FixedClock
from magnetar.wire.mqtt.clients.keep_alive import CLIENTS_PER_TURN, KeepAlive


class Session:
    def __init__(self, keep_alive: int, heard: float = 0.0) -> None:
        self.keep_alive = keep_alive
        self.heard = heard
        self.closed = False

    def silent(self) -> None:
        self.closed = True


@pytest.mark.parametrize("interval", [1, 5, 60, 65_535])
async def test_one_and_a_half_intervals(interval: int, autojump_clock: MockClock) -> None:
    clock = FixedClock()
    wheel, session = KeepAlive(clock), Session(interval)
    wheel.enter(session)
    clock.forward(1.5 * interval - 0.1)
    await wheel.close_silent()
    assert not session.closed
    clock.forward(1.6)
    await wheel.close_silent()
    assert session.closed


async def test_who_has_sent_something_is_looked_at_again() -> None:
    clock = FixedClock()
    wheel, session = KeepAlive(clock), Session(10)
    wheel.enter(session)
    for _ in range(20):
        clock.forward(9)
        session.heard = clock.monotonic()
        await wheel.close_silent()
        assert not session.closed
    clock.forward(17)
    await wheel.close_silent()
    assert session.closed


async def test_who_has_left_is_not_looked_at() -> None:
    clock = FixedClock()
    wheel, sessions = KeepAlive(clock), [Session(1) for _ in range(2 * CLIENTS_PER_TURN)]
    for session in sessions:
        wheel.enter(session)
    for session in sessions[::2]:
        wheel.leave(session)
        wheel.leave(session)
    clock.forward(5)
    await wheel.close_silent()
    assert [session.closed for session in sessions] == [False, True] * CLIENTS_PER_TURN


async def test_who_leaves_while_its_second_is_looked_at() -> None:
    """The wheel pauses after some clients of a second, and others go meanwhile."""
    clock = FixedClock()
    wheel, sessions = KeepAlive(clock), [Session(1) for _ in range(2 * CLIENTS_PER_TURN)]
    for session in sessions:
        wheel.enter(session)
    clock.forward(5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wheel.close_silent)
        while not any(session.closed for session in sessions):
            await trio.lowlevel.checkpoint()
        assert not sessions[-1].closed
        wheel.leave(sessions[-1])
    assert [session.closed for session in sessions] == [True] * (len(sessions) - 1) + [False]
