"""Runs read from the disk, the oldest forgotten first."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from magnetar.bookie.format.entries import seal
from magnetar.bookie.server.cache.read_cache import ReadCache


def run(ledger_id, first, size=1000):
    return seal(ledger_id, first, -1, 0, [b"x" * size])


def test_found_until_there_is_no_room():
    cache = ReadCache(3 * run(1, 0).memory_bytes)
    for i in range(4):
        cache.put(run(1, i))
    assert cache.find(1, 0) is None
    assert [cache.find(1, i).first for i in (1, 2, 3)] == [1, 2, 3]
    assert cache.bytes == 3 * run(1, 0).memory_bytes


def test_runs_leave_with_age():
    cache = ReadCache(100_000)
    cache.put(run(1, 0))
    cache.age()
    cache.put(run(2, 0))
    assert cache.find(1, 0) is not None
    cache.age()
    assert cache.find(1, 0) is None
    assert cache.find(2, 0) is not None
    cache.age()
    assert cache.find(2, 0) is None
    assert cache.bytes == 0


def test_cleared():
    cache = ReadCache(100_000)
    cache.put(run(1, 0))
    cache.clear()
    assert cache.find(1, 0) is None
    assert cache.bytes == 0
    cache.put(run(1, 0))
    assert cache.find(1, 0) is not None


def test_one_run_larger_than_the_cache_is_kept_alone():
    cache = ReadCache(10)
    cache.put(run(1, 0))
    cache.put(run(1, 1))
    assert cache.find(1, 0) is None
    assert cache.find(1, 1) is not None


def test_a_deleted_ledger_leaves_nothing():
    cache = ReadCache(100_000)
    cache.put(run(1, 0))
    cache.put(run(2, 0))
    cache.forget(1)
    cache.forget(3)
    assert cache.find(1, 0) is None
    assert cache.find(2, 0) is not None
    assert cache.bytes == run(2, 0).memory_bytes


def test_runs_that_have_nothing_of_their_own_go():
    cache = ReadCache(100_000)
    cache.put(run(1, 5))
    whole = seal(1, 3, -1, 0, [b"x"] * 10)
    cache.put(whole)
    assert cache.find(1, 5) is whole
    assert cache.find(1, 12) is whole
    cache.put(run(1, 3))
    assert cache.find(1, 12) is whole
    assert cache.bytes == whole.memory_bytes
    cache.put(run(1, 13))
    assert cache.find(1, 12) is whole
    assert cache.find(1, 13).first == 13
    assert cache.find(1, 14) is None
    cache.forget(1)
    assert cache.bytes == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 10)), max_size=40))
def test_what_is_found_is_right_and_the_bytes_add_up(puts):
    cache = ReadCache(3_000)
    for ledger_id, first, count in puts:
        cache.put(seal(ledger_id, first, -1, 0, [b"x" * 100] * count))
        held = {id(one): one for one in cache._order.values()}
        assert cache.bytes == sum(one.memory_bytes for one in held.values())
        assert cache.bytes <= 3_000 or len(held) == 1
        assert sum(map(len, cache._ledgers.values())) == len(held)
        newest = cache.find(ledger_id, first)
        assert newest is not None
        for entry_id in range(35):
            one = cache.find(ledger_id, entry_id)
            assert one is None or one.first <= entry_id <= one.last


class Looked(Struct, frozen=True):
    """As much of a run as the cache knows; counts how often it is asked where it begins."""

    begin: int
    ledger_id: int = 1
    memory_bytes: int = 100

    @property
    def first(self):
        looks.append(self)
        return self.begin

    @property
    def last(self):
        return self.begin


looks = []


def test_many_short_runs_of_one_ledger_are_not_all_looked_at():
    """A topic that was written slowly beside others has thousands of them."""
    cache = ReadCache(100 * 4_000)
    for place in range(5_000):
        looks.clear()
        assert cache.find(1, place) is None
        cache.put(Looked(place))
        assert len(looks) < 80
    assert cache.find(1, 999) is None
    assert cache.find(1, 1_000).begin == 1_000
