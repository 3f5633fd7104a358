"""Which entries are kept, in whatever order they come."""

from itertools import permutations

import pytest

from magnetar.bookie.client.quorum.entry_prefix import EntryPrefix
from magnetar.core.kernel.errors import StorageFailed

LOST = StorageFailed("lost")


def test_all_have_room():
    prefix = EntryPrefix(range(5, 8), 6)
    for entry_id in (7, 5):
        prefix.put(entry_id, b"%02d" % entry_id)
        assert not prefix.complete
    assert prefix.missing() == [6]
    prefix.put(6, b"06")
    assert prefix.taken() == ([b"05", b"06", b"07"], None)
    assert prefix.largest == 2


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_the_first_ones_that_have_room_in_any_order(order):
    prefix = EntryPrefix(range(4), 250)
    for entry_id in order:
        prefix.put(entry_id, bytes(100))
        assert sum(map(len, prefix._found.values())) <= 250
    entries, error = prefix.taken()
    assert (1 <= len(entries) <= 2, error) == (True, None)


def test_the_first_entry_is_kept_however_large_it_is():
    prefix = EntryPrefix([3, 9, 12], 10)
    prefix.put(9, bytes(50))
    assert prefix.missing() == [3], "9 has no room, and 12 is behind it"
    prefix.put(12, b"")
    prefix.put(3, bytes(60))
    assert prefix.taken() == ([bytes(60)], None)
    assert prefix.largest == 60


def test_nothing_is_wanted_behind_one_that_cannot_be_read():
    prefix = EntryPrefix(range(4), 100)
    prefix.put(3, b"3")
    prefix.put(1, LOST)
    assert prefix.missing() == [0]
    prefix.put(2, LOST)
    prefix.put(0, b"0")
    assert prefix.taken() == ([b"0"], LOST)
    prefix.put(0, LOST)
    assert prefix.taken() == ([], LOST)
