"""Login sessions of web pages: who has authenticated once is known by a cookie, for a while.

    POST /admin/v2/session      any proof of an identity: begins a session, and sets the cookie
    GET /admin/v2/session       who one is
    DELETE /admin/v2/session    ends it

A session stands for its identity and nothing more: each request asks the same judge. It ends when
it is not used for `IDLE_SECONDS`, at the latest after `LIFE_SECONDS` or with the proof that began
it, and when that proof is gone (a user who is removed). All end with the server, which keeps them
in memory.

The cookie is `HttpOnly`, so that no script reads it, and `SameSite=Strict`; `guard.py` refuses what
other pages make a browser send. Only a digest of it is kept.

Invariants: memory is bounded, by identity too; a cookie is never guessed (256 bits at random).
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import Unauthenticated

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.security.identity import Identity
    from magnetar.core.security.live import LiveSessions

COOKIE: Final = "magnetar-session"
IDLE_SECONDS: Final = 30 * 60
LIFE_SECONDS: Final = 12 * 3600
SESSIONS_MAX: Final = 1_000
OF_ONE_MAX: Final = 20
"""Sessions of one identity; a further one ends the one that was not used for longest."""
SECRET_BYTES: Final = 32


class LoginSession:
    """One session, as `LiveSessions` knows it."""

    __slots__ = ("_sessions", "digest", "ends_at", "identity", "used_at")

    def __init__(
        self, sessions: LoginSessions, digest: bytes, identity: Identity, now: float
    ) -> None:
        self._sessions = sessions
        self.digest: Final = digest
        self.identity: Final = identity
        self.ends_at: Final = now + LIFE_SECONDS
        self.used_at = now

    def is_over(self, now: float) -> bool:
        return now >= self.ends_at or now - self.used_at >= IDLE_SECONDS

    def rights_changed(self) -> None:
        """Each request is judged anew."""

    def expired(self) -> None:
        """The proof has expired, or is gone."""
        self._sessions.end(self)


class LoginSessions:
    """See the module's docstring."""

    def __init__(self, live: LiveSessions, clock: Clock) -> None:
        self._live = live
        self._clock = clock
        self._sessions: OrderedDict[bytes, LoginSession] = OrderedDict()
        """By the digest of the cookie, the one that was used last at the end."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, identity: Identity) -> str:
        """A new session; returns the cookie's value."""
        now = self._clock.monotonic()
        own = [one for one in self._sessions.values() if one.identity.name == identity.name]
        for one in own[: max(0, len(own) - OF_ONE_MAX + 1)]:
            self.end(one)
        while len(self._sessions) >= SESSIONS_MAX:
            self.end(next(iter(self._sessions.values())))
        cookie = secrets.token_urlsafe(SECRET_BYTES)
        made = LoginSession(self, _digest(cookie), identity, now)
        self._sessions[made.digest] = made
        self._live.add(made)
        return cookie

    def identity(self, cookie: str) -> Identity:
        """Who a cookie stands for; raises `Unauthenticated` if its session is over."""
        found = self._sessions.get(_digest(cookie))
        now = self._clock.monotonic()
        if found is not None and found.is_over(now):
            self.end(found)
            found = None
        if found is None:
            raise Unauthenticated("the session is over: log in again")
        found.used_at = now
        self._sessions.move_to_end(found.digest)
        return found.identity

    def end_of(self, cookie: str) -> None:
        """End the session of a cookie, if there is one."""
        found = self._sessions.get(_digest(cookie))
        if found is not None:
            self.end(found)

    def end(self, session: LoginSession) -> None:
        self._sessions.pop(session.digest, None)
        self._live.remove(session)


def _digest(cookie: str) -> bytes:
    """Compared in place of the cookie, so that the time of a lookup tells nothing about it."""
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
