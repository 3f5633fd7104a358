"""Pauses reading from a connection that has used more than its rates or its quota allow.

Nothing is refused, as in Pulsar (`PublishRateLimiterImpl.java` of 4.2, PIP-322) and Kafka (KIP-13,
KIP-219): the server stops reading. There are two reasons:

    a rate      until it is met again; other connections use it, too, so after each wait the
                remaining time is computed again (`spend`)
    a quota     for a time that its client was told, and no longer (`hold`)

Invariant: while there is a reason, one task waits and the connection is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import Throttle, wait_seconds
from magnetar.core.link.memory.pauses import PAUSE_RATE

LOOK_SECONDS: Final = 1.0
"""The longest wait before `meanwhile` is called again, since clients close silent connections, and
before a rate that was lifted is noticed."""


class PausedConnection(Protocol):
    """A connection as the throttle uses it."""

    def pause(self, reason: int) -> None: ...

    def resume(self, reason: int) -> None: ...


def _nothing() -> None:
    """Nobody waits for the end."""


class ConnectionThrottle:
    """One per connection. See the module's docstring."""

    __slots__ = (
        "_clock",
        "_connection",
        "_exceeded",
        "_held_until",
        "_meanwhile",
        "_released",
        "_spawn",
        "holds",
        "waits",
    )

    def __init__(
        self,
        clock: Clock,
        spawn: Callable[..., None],
        connection: PausedConnection,
        meanwhile: Callable[[float], bool],
        released: Callable[[], None] = _nothing,
    ) -> None:
        """`meanwhile` takes the time before each wait, and returns whether to go on waiting;
        `released` is called after the last one.
        """
        self._clock = clock
        self._spawn = spawn
        self._connection = connection
        self._meanwhile = meanwhile
        self._released = released
        self._exceeded: tuple[Throttle, ...] = ()
        """The rates that the connection waits for."""
        self._held_until = 0.0
        self.waits = False
        """Whether the connection is not read."""
        self.holds = False
        """The same because of a quota."""

    def spend(self, throttles: Iterable[Throttle], messages: int, size: int) -> None:
        """Count messages against these rates, and pause if one is exceeded."""
        now = self._clock.monotonic()
        for throttle in throttles:
            throttle.spend(messages, size)
            if throttle.wait_seconds(now) > 0 and throttle not in self._exceeded:
                self._exceeded += (throttle,)
                self._pause()

    def hold(self, seconds: float) -> float:
        """Pause for that long; of several times the latest end counts. Returns how much longer that
        makes the wait.
        """
        now = self._clock.monotonic()
        before = max(self._held_until, now)
        self._held_until = max(before, now + seconds)
        self.holds = True
        self._pause()
        return self._held_until - before

    def _pause(self) -> None:
        if not self.waits:
            self.waits = True
            self._connection.pause(PAUSE_RATE)
            self._spawn(self._wait)

    def closed(self) -> None:
        """Tell nobody of the end, as the connection is gone."""
        self._released = _nothing

    @property
    def wait_seconds(self) -> float:
        """How long the connection still has to wait, if no other uses its rates."""
        if not self.waits:
            return 0.0
        now = self._clock.monotonic()
        return max(wait_seconds(self._exceeded, now), self._held_until - now, 0.0)

    async def _wait(self) -> None:
        wait = self.wait_seconds
        while wait > 0 and self._meanwhile(self._clock.monotonic()):
            await trio.sleep(min(wait, LOOK_SECONDS))
            wait = self.wait_seconds
        self._exceeded = ()
        self._held_until = 0.0
        self.waits = self.holds = False
        self._connection.resume(PAUSE_RATE)
        self._released()
