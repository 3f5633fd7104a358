"""Waiting for what a plain call tells."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import NotReady


async def test_what_is_told_is_waited_for(autojump_clock: MockClock) -> None:
    waiting = Completion[int]()
    with trio.move_on_after(1) as still:
        await waiting.result()
    assert still.cancelled_caught
    waiting.done(7)
    assert await waiting.result() == 7


async def test_what_was_told_before() -> None:
    waiting = Completion[None]()
    waiting.done(None)
    assert await waiting.result() is None


async def test_an_error_is_raised() -> None:
    waiting = Completion[None]()
    error = NotReady("not yet")
    waiting.done(error)
    with pytest.raises(NotReady) as raised:
        await waiting.result()
    assert raised.value is error


async def test_the_first_counts() -> None:
    waiting = Completion[int]()
    waiting.done(1)
    waiting.done(2)
    assert await waiting.result() == 1
