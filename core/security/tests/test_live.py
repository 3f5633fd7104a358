"""Sessions are told of changed rights, and of proofs that expire."""

from __future__ import annotations

import trio

from magnetar.core.security.identity import Identity
from magnetar.core.security.live import LOOK_SECONDS, LiveSessions
from magnetar.core.testing.clock import FixedClock


class Guest:
    """A session that notes what it is told."""

    def __init__(self, expires_at: float | None = None) -> None:
        self.identity = Identity("ali", expires_at=expires_at)
        self.told: list[str] = []

    def rights_changed(self) -> None:
        self.told.append("changed")

    def expired(self) -> None:
        self.told.append("expired")


async def test_one_whose_proof_has_expired_loses_rights_as_well(autojump_clock: object) -> None:
    """It may have a minute to refresh it."""
    live, clock = LiveSessions(), FixedClock()
    guest = Guest(clock.wall_ms() / 1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run, clock)
        live.add(guest)
        live.rights_changed()
        await trio.sleep(LOOK_SECONDS / 4)
        assert guest.told == ["expired", "changed"]
        nursery.cancel_scope.cancel()


def test_who_is_gone_is_told() -> None:
    live, ali, bob = LiveSessions(), Guest(), Guest()
    ali.identity, bob.identity = Identity("ali", (), "password"), Identity("bob", (), "token")
    live.add(ali)
    live.add(bob)
    assert live.names(("token", "basic")) == {"bob"}
    live.gone("password", {"ali", "bob"})
    assert (ali.told, bob.told) == (["expired"], [])


async def test_who_is_gone_is_told_until_it_has_another_proof(autojump_clock: object) -> None:
    """A client that does not answer when it is asked for one is disconnected by that."""
    live, ali = LiveSessions(), Guest()
    ali.identity = Identity("ali", (), "password")
    live.add(ali)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run, FixedClock())
        live.gone("password", {"ali"})
        await trio.sleep(LOOK_SECONDS * 1.5)
        assert ali.told == ["expired"] * 2
        ali.identity = Identity("ali", (), "password")
        await trio.sleep(LOOK_SECONDS * 2)
        assert ali.told == ["expired"] * 2
        nursery.cancel_scope.cancel()


async def test_sessions_are_told(autojump_clock: object) -> None:
    live, clock = LiveSessions(), FixedClock()
    lasting, gone = Guest(), Guest(clock.wall_ms() / 1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run, clock)
        live.add(lasting)
        live.add(gone)
        await trio.sleep(LOOK_SECONDS * 1.5)
        assert (lasting.told, gone.told) == ([], ["expired"])
        live.rights_changed()
        await trio.sleep(LOOK_SECONDS / 4)
        assert (lasting.told, gone.told) == (["changed"], ["expired", "expired", "changed"])
        live.remove(lasting)
        live.remove(gone)
        live.rights_changed()
        await trio.sleep(LOOK_SECONDS * 2)
        assert lasting.told == ["changed"], "it is gone"
        nursery.cancel_scope.cancel()


async def test_who_lost_an_authority_is_told(autojump_clock: object) -> None:
    live, clock = LiveSessions(), FixedClock()
    with_one, without = Guest(), Guest()
    with_one.identity = Identity("bob", authorities=frozenset((b"a",)))
    for each in (with_one, without):
        live.add(each)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run, clock)
        await trio.sleep(LOOK_SECONDS * 1.5)
        assert with_one.told == []
        live.is_gone = lambda _who: True
        await trio.sleep(LOOK_SECONDS)
        assert (with_one.told, without.told) == (["expired"], [])
        nursery.cancel_scope.cancel()
