"""A publish throttle: pauses reading from a connection that published faster than its rates allow.

Messages are never refused, as in Pulsar (`PublishRateLimiterImpl.java` of 4.2, PIP-322) and Kafka
(KIP-13, KIP-219): the server stops reading until the rate is met again. Other connections use the
same rates meanwhile, so after each wait the remaining time is computed again.

Invariant: while a rate is exceeded, one task waits for it and the connection is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import Throttle, wait_seconds
from magnetar.core.link.memory.pauses import PAUSE_RATE

LOOK_SECONDS: Final = 15.0
"""The longest wait before `meanwhile` is called again: clients close silent connections."""


class PausedConnection(Protocol):
    """A connection as the throttle uses it."""

    def pause(self, reason: int) -> None: ...

    def resume(self, reason: int) -> None: ...


class PublishThrottle:
    """One per connection that publishes. See the module's docstring."""

    __slots__ = ("_clock", "_connection", "_meanwhile", "_spawn", "exceeded")

    def __init__(
        self,
        clock: Clock,
        spawn: Callable[..., None],
        connection: PausedConnection,
        meanwhile: Callable[[float], bool],
    ) -> None:
        """`meanwhile` takes the time before each wait, and returns whether to go on waiting."""
        self._clock = clock
        self._spawn = spawn
        self._connection = connection
        self._meanwhile = meanwhile
        self.exceeded: tuple[Throttle, ...] = ()
        """The rates that the connection waits for."""

    def spend(self, throttles: Iterable[Throttle | None], messages: int, size: int) -> None:
        """Count messages against these rates (None: no limit), and pause if one is exceeded."""
        now = self._clock.monotonic()
        for throttle in throttles:
            if throttle is None:
                continue
            throttle.spend(messages, size)
            if throttle.wait_seconds(now) > 0 and throttle not in self.exceeded:
                self.exceeded += (throttle,)
                if len(self.exceeded) == 1:
                    self._connection.pause(PAUSE_RATE)
                    self._spawn(self._wait)

    @property
    def wait_seconds(self) -> float:
        """How long the connection still has to wait, if no other uses its rates."""
        return wait_seconds(self.exceeded, self._clock.monotonic()) if self.exceeded else 0.0

    async def _wait(self) -> None:
        wait = self.wait_seconds
        while wait > 0 and self._meanwhile(self._clock.monotonic()):
            await trio.sleep(min(wait, LOOK_SECONDS))
            wait = self.wait_seconds
        self.exceeded = ()
        self._connection.resume(PAUSE_RATE)
