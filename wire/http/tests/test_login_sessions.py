"""Login sessions: what ends them, and their bounds."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.identity import Identity
from magnetar.core.security.live import LiveSessions
from magnetar.core.testing.clock import FixedClock
from magnetar.wire.http.login_sessions import (
    IDLE_SECONDS,
    LIFE_SECONDS,
    OF_ONE_MAX,
    SESSIONS_MAX,
    LoginSessions,
)


class Pages:
    """Sessions, their clock, and whether cookies are good."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.live = LiveSessions()
        self.sessions = LoginSessions(self.live, self.clock)

    def knows(self, cookie: str) -> bool:
        try:
            self.sessions.identity(cookie)
        except Unauthenticated:
            return False
        return True


def test_a_session_is_its_identity() -> None:
    pages = Pages()
    ali = Identity("ali")
    cookie = pages.sessions.begin(ali)
    assert len(cookie) >= 43
    assert pages.sessions.identity(cookie) is ali
    for other in ("", cookie[:-1], cookie + "x", "\ud800", cookie.swapcase()):
        assert not pages.knows(other)
    pages.sessions.end_of("another")
    pages.sessions.end_of(cookie)
    assert not pages.knows(cookie)


def test_what_is_not_used_ends() -> None:
    pages = Pages()
    cookie = pages.sessions.begin(Identity("ali"))
    for _ in range(LIFE_SECONDS // (IDLE_SECONDS - 1)):
        pages.clock.forward(IDLE_SECONDS - 1)
        assert pages.knows(cookie)
    pages.clock.forward(IDLE_SECONDS - 1)
    assert not pages.knows(cookie), "its life is over, although it is used"
    cookie = pages.sessions.begin(Identity("ali"))
    pages.clock.forward(IDLE_SECONDS)
    assert not pages.knows(cookie)
    assert len(pages.sessions) == 0


async def test_it_ends_with_its_proof() -> None:
    pages = Pages()
    gone = pages.sessions.begin(Identity("bob", method="basic"))
    stays = pages.sessions.begin(Identity("ali", method="basic"))
    pages.live.gone("basic", ["bob"])
    assert (pages.knows(gone), pages.knows(stays)) == (False, True)
    expires = pages.clock.wall_ms() / 1000 + 60
    cookie = pages.sessions.begin(Identity("eve", expires_at=expires))
    await pages.live._tell(True, expires - 1)
    assert pages.knows(cookie)
    await pages.live._tell(False, expires)
    assert (pages.knows(cookie), pages.knows(stays)) == (False, True)


def test_memory_is_bounded() -> None:
    pages = Pages()
    ali = pages.sessions.begin(Identity("ali"))
    cookies = [pages.sessions.begin(Identity("bob")) for _ in range(OF_ONE_MAX + 5)]
    assert [pages.knows(cookie) for cookie in cookies] == [False] * 5 + [True] * OF_ONE_MAX
    assert pages.knows(ali), "whoever begins many ends his own"
    for number in range(SESSIONS_MAX):
        pages.sessions.begin(Identity(f"n{number}"))
    assert len(pages.sessions) == SESSIONS_MAX
    assert len(pages.live._sessions) == SESSIONS_MAX
    assert not pages.knows(ali)


@pytest.mark.parametrize("seconds", [IDLE_SECONDS, LIFE_SECONDS])
def test_an_end_is_told_once(seconds: int) -> None:
    pages = Pages()
    cookie = pages.sessions.begin(Identity("ali"))
    pages.clock.forward(seconds)
    assert not pages.knows(cookie)
    assert not pages.knows(cookie)
    assert not pages.live._sessions
