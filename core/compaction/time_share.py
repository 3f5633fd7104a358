"""Shares the loop with other tasks while entries are unpacked, one after the other.

A short piece of work runs on the loop, and others run after so many messages. A long one runs in
a thread: few bytes may expand to 100,000 messages, and what decompresses them, or has a compiled
twin, lets the loop run meanwhile. On few cores the loop would wait for the end of that thread's
slice; so the thread gives way (`core/kernel/long_slices.py`).

Whoever waits for the loop's core would wait while it works here for several turns, although another
core may be idle: Linux searches for work on other cores only now and then. So it offers its core in
each of them: a client that gets a reply a moment before such work sends its next message at once,
and not a third of a millisecond later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

import trio

from magnetar.core.kernel.long_slices import give_way, offer_core

ON_THE_LOOP_BYTES: Final = 64 * 1024
ON_THE_LOOP_MESSAGES: Final = 2_000
"""More would keep the loop for milliseconds."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _in_thread(work: Callable[[], Result]) -> Result:
    give_way()
    return work()


class TimeShare:
    """See the module's docstring."""

    def __init__(self, messages_per_turn: int) -> None:
        """So many take about a millisecond."""
        self._messages_per_turn = messages_per_turn
        self._messages = 0

    async def rest(self, messages: int) -> None:
        """Have others run, if enough was done."""
        self._messages += messages
        if self._messages >= self._messages_per_turn:
            self._messages = 0
            await self.turn()

    async def turn(self) -> None:
        """Have others run, of this process and of others."""
        await trio.lowlevel.checkpoint()
        offer_core()

    async def call(
        self,
        size: int,
        messages: int,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Do what reads so many bytes and messages. Meanwhile the state may become another."""
        if size > ON_THE_LOOP_BYTES or messages > ON_THE_LOOP_MESSAGES:
            result = await trio.to_thread.run_sync(_in_thread, partial(work, *args, **kwargs))
            offer_core()
            return result
        await self.rest(messages)
        return work(*args, **kwargs)
