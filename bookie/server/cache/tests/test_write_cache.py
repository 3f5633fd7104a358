"""Two halves of the write cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from magnetar.bookie.format.entries import seal
from magnetar.bookie.server.cache.write_cache import Half, WriteCache


def run(ledger_id, first, count=3):
    return seal(ledger_id, first, -1, 0, [b"x"] * count)


def latest(bits):
    """A half is due when it is full."""
    return 0


def test_runs_are_found_by_any_of_their_entries():
    cache = WriteCache(10_000, latest)
    one, two, other = run(1, 0), run(1, 3), run(2, 0)
    for item in (one, two, other):
        assert not cache.put(item)
    assert [cache.find(1, i) for i in range(7)] == [one, one, one, two, two, two, None]
    assert cache.find(2, 2) is other
    assert cache.find(3, 0) is None
    assert (cache.last(1), cache.last(2), cache.last(3)) == (5, 2, -1)
    assert cache.entries == 9


def test_a_leaving_half_is_still_read_until_it_is_dropped():
    cache = WriteCache(10_000, latest)
    cache.put(run(1, 0))
    half = cache.swap()
    cache.put(run(1, 3))
    assert half.entries == 3
    assert cache.find(1, 0) is not None
    assert cache.last(1) == 5
    cache.drop()
    assert cache.find(1, 0) is None
    assert cache.entries == 3


def test_full_congested_overfull():
    cache = WriteCache(1000, latest)
    while not cache.put(run(1, 0)):
        assert not cache.is_congested
    assert cache.is_congested
    assert not cache.is_over(1000)
    cache.swap()
    assert not cache.is_congested  # the other half is free
    while not cache.put(run(1, 0)):
        assert not cache.is_congested
    assert cache.is_congested
    for _ in range(5):
        cache.put(run(1, 0))
    assert cache.is_over(1000)
    cache.drop()
    cache.swap()
    assert not cache.is_over(1000)


@pytest.mark.parametrize("bits", [0, 1, 100, 255])
def test_a_half_is_due_in_its_last_quarter(bits):
    cache = WriteCache(100_000, {8: bits}.get)
    for _ in range(2):
        while not cache.put(run(1, 0)):
            assert cache.filling.bytes < 100_000
        assert cache.filling.bytes >= 100_000 - 25_000 * bits / 256 - 1
        assert cache.filling.bytes < 100_000 - 25_000 * bits / 256 + 1000
        cache.swap()
        cache.drop()


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), min_size=1, max_size=12))
def test_entries_written_again_are_found_too(spans):
    half = Half()
    for first, count in spans:
        half.put(run(1, first, count))
    held = {i for first, count in spans for i in range(first, first + count)}
    assert {i for i in range(40) if half.find(1, i) is not None} == held
    assert half.last(1) == max(held)
    firsts = [item.first for item in half.runs[1]]
    assert firsts == sorted(firsts)


class Looked(Struct, frozen=True):
    """As much of a run of one entry as a half knows; counts how often it is asked where it is."""

    first: int
    ledger_id: int = 1
    memory_bytes: int = 100
    count: int = 1

    @property
    def last(self):
        looks.append(self)
        return self.first


looks = []


def test_what_a_recovery_writes_again_makes_no_search_long():
    """A ledger that is striped over bookies has runs of one entry, and gaps between them."""
    half = Half()
    for first in range(0, 10_000, 2):
        half.put(Looked(first))
    half.put(Looked(0))
    looks.clear()
    assert half.find(1, 5_001) is None
    assert half.find(1, 5_000).first == 5_000
    assert half.last(1) == 9_998
    assert len(looks) < 10
