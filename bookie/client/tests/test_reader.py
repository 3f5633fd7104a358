"""A reader never goes beyond what is confirmed, and takes nothing before that for missing."""

import pytest
import trio

from magnetar.bookie.client.reader import Reader
from magnetar.core.kernel.errors import Corrupted, EntryNotFound


class Link:
    """Entries of one ledger, some of which are lost."""

    def __init__(self, *payloads):
        self.payloads = payloads
        self.requested = []

    async def read(self, ledger_id, first, last, bytes_max):
        await trio.lowlevel.checkpoint()
        self.requested.append((ledger_id, first, last, bytes_max))
        if self.payloads[first] is None:
            raise EntryNotFound("lost")
        return list(self.payloads[first : last + 1])

    def read_at_once(self, ledger_id, first, last, bytes_max):
        self.requested.append((ledger_id, first, last, bytes_max))
        return list(self.payloads[first : last + 1])

    async def damage(self, ledger_id, entry_id, last):
        await trio.lowlevel.checkpoint()
        return (entry_id, last)


async def test_what_is_not_confirmed_is_not_read():
    link = Link(b"a", b"b", b"c")
    confirmed = 1
    reader = Reader(4, link, lambda: confirmed)
    assert (reader.ledger_id, reader.last_confirmed) == (4, 1)
    assert await reader.read(0, 9, 100) == [b"a", b"b"]
    assert link.requested == [(4, 0, 1, 100)]
    for first in (2, -1):
        with pytest.raises(EntryNotFound):
            await reader.read(first, 9, 100)
    confirmed = 2
    assert await reader.read(2, 2, 100) == [b"c"], "it has been confirmed since"


async def test_a_confirmed_entry_that_is_not_there_is_lost():
    reader = Reader(4, Link(b"a", None), lambda: 1)
    with pytest.raises(Corrupted, match="4:1 was confirmed and is lost"):
        await reader.read(1, 1, 100)


async def test_at_once_it_gives_what_is_at_hand_within_the_same_bounds():
    link = Link(b"a", b"b", b"c")
    reader = Reader(4, link, lambda: 1)
    assert reader.read_at_once(0, 9, 100) == [b"a", b"b"]
    assert link.requested == [(4, 0, 1, 100)]
    assert reader.read_at_once(2, 9, 100) == []
    assert reader.read_at_once(-1, 9, 100) == []
    assert len(link.requested) == 1, "the bookie is not asked for nothing"


async def test_damage_ends_where_the_ledger_does():
    assert await Reader(4, Link(b"a"), lambda: 7).damage(3) == (3, 7)
