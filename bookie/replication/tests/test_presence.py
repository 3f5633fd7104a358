"""A mark is explained by an absence only if that is known."""

from types import SimpleNamespace

from magnetar.bookie.replication.presence import SLACK_MS, BookiePresence
from magnetar.core.testing import FixedClock

BEGAN_MS = 10_000_000


def test_who_was_away_when_a_ledger_was_marked():
    bookies = SimpleNamespace(writable={"a:1": None, "b:1": None}, read_only={"c:1": None})
    clock = FixedClock(BEGAN_MS)
    presence = BookiePresence(bookies, clock)
    assert not presence.was_away("a:1", 0), "nobody knows when it came"
    clock.forward(100.0)
    left_ms = clock.wall_ms()
    del bookies.writable["b:1"]
    bookies.read_only.clear()
    presence.changed()
    assert not presence.was_away("b:1", left_ms), "it is away still"
    clock.forward(100.0)
    came_ms = clock.wall_ms()
    bookies.writable["b:1"] = bookies.writable["d:1"] = None
    presence.changed()
    assert presence.was_away("b:1", left_ms)
    assert presence.was_away("b:1", came_ms)
    assert presence.was_away("b:1", left_ms - SLACK_MS), "others hear of it sooner"
    assert not presence.was_away("b:1", left_ms - SLACK_MS - 1), "it was there, and lacked entries"
    assert not presence.was_away("b:1", came_ms + 1), "so it is now"
    assert not presence.was_away("b:1", None), "the mark has no time"
    assert presence.was_away("d:1", BEGAN_MS), "it was not there when we began"
    assert not presence.was_away("c:1", left_ms)
    clock.forward(100.0)
    presence.changed()
    assert presence.was_away("b:1", came_ms), "nothing has changed"


def test_a_bookie_that_goes_to_read_only_was_not_away():
    bookies = SimpleNamespace(writable={"a:1": None}, read_only={})
    presence = BookiePresence(bookies, clock := FixedClock(BEGAN_MS))
    bookies.read_only["a:1"] = bookies.writable.pop("a:1")
    presence.changed()
    assert not presence.was_away("a:1", clock.wall_ms())


def test_the_bookie_of_this_process_was_away_until_it_began():
    bookies = SimpleNamespace(writable={"a:1": None}, read_only={})
    presence = BookiePresence(bookies, FixedClock(BEGAN_MS), "a:1", BEGAN_MS - 5000)
    assert presence.was_away("a:1", BEGAN_MS - 3_600_000)
    assert not presence.was_away("a:1", BEGAN_MS - 4000), "it ran"
