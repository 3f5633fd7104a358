"""Connections that live longer than what was found when they began.

A right may be taken from a client that is attached, and a proof may expire while its connection is
used. Each front registers its sessions here, which are told of both within a second.

Invariant: a session is told of a change after the judge knows it; of an expired proof again and
again, until it has another one or is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.security.identity import Identity

LOOK_SECONDS: Final = 0.5
"""How often it is looked for expired proofs."""
SESSIONS_PER_REST: Final = 100
"""Sessions that are told before other tasks run: each looks at all that is attached to it."""


class LiveSession(Protocol):
    """An authenticated connection, as `LiveSessions` knows it."""

    @property
    def identity(self) -> Identity: ...

    def rights_changed(self) -> None:
        """Detach what is no longer allowed. Plain call."""
        ...

    def expired(self) -> None:
        """The proof has expired: ask for another one, or end. Plain call, repeated until the
        identity is another one or the session is gone.
        """
        ...


def _never(_who: Identity) -> bool:
    """There are no authorities."""
    return False


class LiveSessions:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._sessions: dict[LiveSession, Identity | None] = {}
        """With the identity whose proof is gone, if there is one."""
        self.is_gone: Callable[[Identity], bool] = _never
        """Whether a proof that stands on authorities has lost them."""
        self._changed = trio.Event()

    def add(self, session: LiveSession) -> None:
        self._sessions[session] = None

    def remove(self, session: LiveSession) -> None:
        self._sessions.pop(session, None)

    def rights_changed(self) -> None:
        """The judge's rules have changed."""
        self._changed.set()

    def gone(self, method: str, names: Collection[str]) -> None:
        """What proved these people is gone: treat their sessions as expired."""
        for session in list(self._sessions):
            identity = session.identity
            if identity.method == method and identity.name in names:
                self._sessions[session] = identity
                session.expired()

    def names(self, methods: Collection[str]) -> set[str]:
        """Whose sessions were proven by one of these methods."""
        return {
            session.identity.name
            for session in self._sessions
            if session.identity.method in methods
        }

    async def run(self, clock: Clock) -> None:
        """Tell sessions until cancelled."""
        while True:
            with trio.move_on_after(LOOK_SECONDS):
                await self._changed.wait()
            changed = self._changed.is_set()
            if changed:
                self._changed = trio.Event()
            await self._tell(changed, clock.wall_ms() / 1000)

    async def _tell(self, changed: bool, now: float) -> None:
        for count, session in enumerate(list(self._sessions), 1):
            if session not in self._sessions:
                continue  # it ended meanwhile
            who = session.identity
            over = who.expires_at is not None and who.expires_at <= now
            lost = self._sessions[session] is who or (who.authorities and self.is_gone(who))
            if over or lost:
                session.expired()
            if changed and session in self._sessions:  # it may have ended by that
                session.rights_changed()
            if count % SESSIONS_PER_REST == 0:
                await trio.lowlevel.checkpoint()
