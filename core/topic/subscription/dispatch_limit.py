"""Dispatch rates: how far a dispatcher may go now, and who wakes it when it may go on.

A subscription has at most one `DispatchLimit`, for its own rate and that of its topic; without
rates it has none, and pays nothing. Delivered entries are paid for by `Consumer.send`.

Invariant: while the limit stops its dispatcher, one task waits to start it again.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from magnetar.core.kernel.throttle import Throttle, wait_seconds
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.environment import Environment


class DispatchLimit:
    """See the module's docstring."""

    __slots__ = ("_env", "_look", "_waiting", "throttles")

    def __init__(
        self, throttles: tuple[Throttle, ...], env: Environment, look: Callable[[], None]
    ) -> None:
        self.throttles = throttles
        self._env = env
        self._look = look
        self._waiting = False

    def spend(self, messages: int, size: int) -> None:
        """So much is delivered."""
        for throttle in self.throttles:
            throttle.spend(messages, size)

    def stop(self, whole: Slice, start: int, stop: int) -> int:
        """How far from `start` there is room, up to `stop`; `start` itself if there is none.

        An entry goes whole, so the last one may overdraw.
        """
        now = self._env.clock.monotonic()
        allowances = [throttle.allowance(now) for throttle in self.throttles]
        messages, size = (min(room) for room in zip(*allowances, strict=True))
        at = start
        while at < stop and messages > 0 and size > 0:
            messages -= 1 if whole.counts is None else whole.counts[at]
            size -= len(whole.payloads[at])
            at += 1
        if at == start and not self._waiting:
            self._waiting = True
            self._env.spawn(self._wait)
        return at

    async def _wait(self) -> None:
        await trio.sleep(wait_seconds(self.throttles, self._env.clock.monotonic()))
        self._waiting = False
        self._look()
