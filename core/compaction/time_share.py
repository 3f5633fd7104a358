"""Shares the loop with other tasks while entries are unpacked, one after the other.

A short piece of work runs on the loop, and others run after so many messages. A long one runs in
a thread: few bytes may expand to 100,000 messages, and what decompresses them, or has a compiled
twin, lets the loop run meanwhile. On few cores the loop would wait for the end of that thread's
slice; so the thread gives way (`core/kernel/long_slices.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

import trio

from magnetar.core.kernel.long_slices import give_way

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
            await trio.lowlevel.checkpoint()

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
            return await trio.to_thread.run_sync(_in_thread, partial(work, *args, **kwargs))
        await self.rest(messages)
        return work(*args, **kwargs)
