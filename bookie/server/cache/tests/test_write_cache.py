"""Two halves of the write cache."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format.entries import seal
from magnetar.bookie.server.cache.write_cache import Half, WriteCache


def run(ledger_id, first, count=3):
    return seal(ledger_id, first, -1, 0, [b"x"] * count)


def test_runs_are_found_by_any_of_their_entries():
    cache = WriteCache(10_000)
    one, two, other = run(1, 0), run(1, 3), run(2, 0)
    for item in (one, two, other):
        assert not cache.put(item)
    assert [cache.find(1, i) for i in range(7)] == [one, one, one, two, two, two, None]
    assert cache.find(2, 2) is other
    assert cache.find(3, 0) is None
    assert (cache.last(1), cache.last(2), cache.last(3)) == (5, 2, -1)
    assert cache.entries == 9


def test_a_leaving_half_is_still_read_until_it_is_dropped():
    cache = WriteCache(10_000)
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
    cache = WriteCache(1000)
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
