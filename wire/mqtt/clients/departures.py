"""Ends the sessions of clients whose connections have ended.

A hundred thousand clients may leave at once, or come and leave faster than the disk stores it. A
session whose record can be written at once is dropped then, and only its bytes wait for the disk.
The others, and those that come while too many wait, wait here: they take a place in a queue, and
few have a task. Storage groups what all of them write.

Invariant: each client that is added leaves, in the order of the connections' ends as far as turns
and wills permit; a client that comes back meanwhile does not wait for the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from magnetar.wire.mqtt.clients.sessions import ConnectedSession, Sessions

WRITTEN_AT_ONCE: Final = 4096
"""Records that wait for storage at the same time, without a task."""
AT_ONCE: Final = 256
"""Clients that leave at the same time, with a task."""


class Departures:
    """See the module's docstring."""

    def __init__(self, sessions: Sessions, spawn: Callable[..., None]) -> None:
        self._sessions = sessions
        self._spawn = spawn
        self._waiting: deque[tuple[str, ConnectedSession]] = deque()
        self._tasks = 0
        self._written = 0
        """Records that wait for storage."""

    def add(self, client_id: str, session: ConnectedSession) -> None:
        """Have a client leave, whose connection has ended. Plain call."""
        if not self._waiting and self._written < WRITTEN_AT_ONCE:
            self._written += 1
            if self._sessions.leave_now(client_id, session, self._stored):
                session.release()
                return
            self._written -= 1
        self._waiting.append((client_id, session))
        if self._tasks < AT_ONCE:
            self._tasks += 1
            self._spawn(self._leave)

    def _stored(self) -> None:
        self._written -= 1

    async def _leave(self) -> None:
        """Have clients leave, one after the other, until none waits."""
        try:
            while self._waiting:
                client_id, session = self._waiting.popleft()
                await self._sessions.leave(client_id, session)
                session.release()
        finally:
            self._tasks -= 1
