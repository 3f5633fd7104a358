"""A mark is explained by an absence only if that is known."""

from types import SimpleNamespace

from magnetar.bookie.replication.presence import BookiePresence
from magnetar.core.testing import FixedClock


def test_who_has_come_since_a_mark():
    bookies = SimpleNamespace(writable={"a:1": None, "b:1": None}, read_only={"c:1": None})
    clock = FixedClock(1000)
    presence = BookiePresence(bookies, clock)
    assert not presence.has_come_since("a:1", 0), "nobody knows when it came"
    del bookies.writable["b:1"]
    presence.changed()
    clock.forward(1.0)
    bookies.writable["b:1"] = bookies.writable["d:1"] = None
    bookies.read_only.clear()
    presence.changed()
    assert presence.has_come_since("b:1", 1999)
    assert presence.has_come_since("d:1", 2000)
    assert not presence.has_come_since("b:1", 2001), "it was there, and lacks something"
    assert not presence.has_come_since("b:1", None), "the mark has no time"
    assert not presence.has_come_since("c:1", 0), "it is away still"
    clock.forward(1.0)
    presence.changed()
    assert presence.has_come_since("b:1", 2000)
    assert not presence.has_come_since("b:1", 2500)
