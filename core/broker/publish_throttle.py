"""What a connection owes for having published faster than it may: it is paid by not being read.

Others spend of the same rates meanwhile, so after each wait it is looked again.

Invariant: while anything is owed one task waits for it, and the connection is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import Throttle, wait_seconds
from magnetar.core.link.memory.pauses import PAUSE_RATE

LOOK_SECONDS: Final = 15.0
"""The longest time between two looks: a connection that waits long is touched meanwhile."""


class Paused(Protocol):
    """What of a connection matters here."""

    def pause(self, reason: int) -> None: ...

    def resume(self, reason: int) -> None: ...


class PublishThrottle:
    """See the module's docstring."""

    __slots__ = ("_clock", "_connection", "_meanwhile", "_spawn", "owing")

    def __init__(
        self,
        clock: Clock,
        spawn: Callable[..., None],
        connection: Paused,
        meanwhile: Callable[[float], bool],
    ) -> None:
        """`meanwhile` is given the time before each wait, and returns whether to go on waiting."""
        self._clock = clock
        self._spawn = spawn
        self._connection = connection
        self._meanwhile = meanwhile
        self.owing: tuple[Throttle, ...] = ()
        """The rates that were exceeded and are not paid off yet."""

    def pay(self, throttles: Iterable[Throttle | None], messages: int, size: int) -> None:
        """So much was published at these rates."""
        now = self._clock.monotonic()
        for throttle in throttles:
            if throttle is None:
                continue
            throttle.spend(messages, size)
            if throttle.wait_seconds(now) > 0 and throttle not in self.owing:
                self.owing += (throttle,)
                if len(self.owing) == 1:
                    self._connection.pause(PAUSE_RATE)
                    self._spawn(self._pay_off)

    @property
    def wait_seconds(self) -> float:
        """How long until all is paid, as things stand."""
        return wait_seconds(self.owing, self._clock.monotonic()) if self.owing else 0.0

    async def _pay_off(self) -> None:
        wait = self.wait_seconds
        while wait > 0 and self._meanwhile(self._clock.monotonic()):
            await trio.sleep(min(wait, LOOK_SECONDS))
            wait = self.wait_seconds
        self.owing = ()
        self._connection.resume(PAUSE_RATE)
