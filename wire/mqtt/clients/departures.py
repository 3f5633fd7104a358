"""Ends the sessions of clients whose connections have ended: some at a time.

A hundred thousand clients may leave at once, and each waits for the disk. Those that wait here take
a place in a queue, and no task of their own. Storage groups what the others write.

Invariant: each client that is added leaves, in the order of the connections' ends as far as turns
permit; a client that comes back meanwhile does not wait for the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from magnetar.wire.mqtt.clients.sessions import ConnectedSession, Sessions

AT_ONCE: Final = 256
"""Clients that leave at the same time."""


class Departures:
    """See the module's docstring."""

    def __init__(self, sessions: Sessions, spawn: Callable[..., None]) -> None:
        self._sessions = sessions
        self._spawn = spawn
        self._waiting: deque[tuple[str, ConnectedSession]] = deque()
        self._tasks = 0

    def add(self, client_id: str, session: ConnectedSession) -> None:
        """Have a client leave, whose connection has ended. Plain call."""
        self._waiting.append((client_id, session))
        if self._tasks < AT_ONCE:
            self._tasks += 1
            self._spawn(self._leave)

    async def _leave(self) -> None:
        """Have clients leave, one after the other, until none waits."""
        try:
            while self._waiting:
                client_id, session = self._waiting.popleft()
                await self._sessions.leave(client_id, session)
                session.release()
        finally:
            self._tasks -= 1
