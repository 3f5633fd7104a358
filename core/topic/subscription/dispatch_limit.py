"""The dispatch limit: how many entries a dispatcher may deliver now, and its wake-up later.

A subscription has at most one, for its own rate and those of its topic and of its resource group;
without rates it has none. `Consumer.send` counts delivered entries. Pulsar's
`DispatchRateLimiter.java` of 4.2 counts in the same way: an entry that exceeds a rate is delivered,
and the next one waits.

For the rate of a group subscriptions of many topics wait, so they take turns (`DispatchTurns`).

Invariant: while the limit stops its dispatcher, one task waits to start it again; it ends
with the limit.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from magnetar.core.kernel.throttle import Throttle, wait_seconds
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.quotas.resource_group import DispatchTurns
from magnetar.core.topic.environment import Environment


class DispatchLimit:
    """See the module's docstring."""

    __slots__ = ("_env", "_schedule", "_turns", "_waiting", "throttles")

    def __init__(
        self,
        throttles: tuple[Throttle, ...],
        turns: DispatchTurns | None,
        env: Environment,
        schedule: Callable[[], None],
    ) -> None:
        """`turns` are those of a group whose rate is among the throttles."""
        self.throttles = throttles
        self._turns = turns
        self._env = env
        self._schedule = schedule
        self._waiting: trio.CancelScope | None = None

    def end(self) -> None:
        """The subscription has another limit, or is closed."""
        if self._waiting is not None:
            self._waiting.cancel()

    def spend(self, messages: int, size: int) -> None:
        """Count what is delivered."""
        for throttle in self.throttles:
            throttle.spend(messages, size)

    def stop(self, whole: Slice, start: int, stop: int) -> int:
        """The end of the entries from `start` on, up to `stop`, that may be delivered now.

        An entry is delivered whole, so the last one may exceed a rate.
        """
        now = self._env.clock.monotonic()
        allowances = [throttle.allowance(now) for throttle in self.throttles]
        messages, size = (min(room) for room in zip(*allowances, strict=True))
        at = start
        while at < stop and messages > 0 and size > 0:
            messages -= 1 if whole.counts is None else whole.counts[at]
            size -= len(whole.payloads[at])
            at += 1
        if at == start and self._waiting is None:
            self._waiting = trio.CancelScope()
            self._env.spawn(self._wait, self._waiting)
        return at

    async def _wait(self, waiting: trio.CancelScope) -> None:
        clock, turns = self._env.clock, self._turns
        shared = None if turns is None else turns.throttle
        alone = [each for each in self.throttles if each is not shared]
        with waiting:
            await trio.sleep(wait_seconds(alone, clock.monotonic()))
            if turns is not None:
                await turns.take(clock)
        self._waiting = None
        self._schedule()
