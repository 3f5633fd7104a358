"""Keep-alive: closes clients that send nothing for one and a half times their interval (3.1.2.10).

A wheel of seconds: each client is looked at in the second in which it would be late, and moved to a
later one if it has sent something meanwhile. So a packet costs nothing but a note of its time.

Invariant: a client with an interval has exactly one place, that of a second of the wheel, or of the
one that is looked at.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

from magnetar.core.kernel.clock import Clock

CLIENTS_PER_TURN: Final = 500
"""Clients that are looked at before other tasks run."""


class TimedSession(Protocol):
    """A session with a keep-alive interval."""

    heard: float
    """When its last packet was received."""
    keep_alive: int
    """In seconds."""

    def silent(self) -> None:
        """Nothing was received for too long: end the connection."""
        ...


class KeepAlive:
    """See the module's docstring."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: dict[int, dict[TimedSession, None]] = {}
        self._places: dict[TimedSession, int] = {}
        self._next = int(clock.monotonic())
        """The second to look at next."""

    def enter(self, session: TimedSession) -> None:
        self._put(session, session.heard + 1.5 * session.keep_alive)

    def leave(self, session: TimedSession) -> None:
        second = self._places.pop(session, None)
        if second in self._seconds:  # not while it is looked at
            self._seconds[second].pop(session, None)

    def _put(self, session: TimedSession, due: float) -> None:
        second = max(int(due) + 1, self._next)
        self._places[session] = second
        self._seconds.setdefault(second, {})[session] = None

    async def run(self) -> None:
        """Look at each second when it is over, until cancelled."""
        while True:
            await self.close_silent()
            await trio.sleep(max(self._next - self._clock.monotonic(), 0))

    async def close_silent(self) -> None:
        """Look at the seconds that are over."""
        now = self._clock.monotonic()
        while self._next <= now:
            self._next += 1
            await self._look_at(self._seconds.pop(self._next - 1, {}))

    async def _look_at(self, sessions: dict[TimedSession, None]) -> None:
        for count, session in enumerate(list(sessions)):
            if count % CLIENTS_PER_TURN == CLIENTS_PER_TURN - 1:
                await trio.lowlevel.checkpoint()
            if self._places.pop(session, None) is None:
                continue  # it has left meanwhile
            due = session.heard + 1.5 * session.keep_alive
            if due <= self._clock.monotonic():
                session.silent()
            else:
                self._put(session, due)
