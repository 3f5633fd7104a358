"""Entries of a ledger that is striped over bookies, together and apart."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import entries
from magnetar.bookie.format.entries import seal
from magnetar.bookie.server.cache.read_cache import ReadCache
from magnetar.bookie.server.cache.striped_run import goes_on, striped_in


def record(ledger_id, entry_id, size=10):
    return seal(ledger_id, entry_id, -1, 0, [b"%d" % (entry_id % 10) * size]).blob


def log(*entry_ids, ledger_id=1):
    return b"".join(record(ledger_id, i) for i in entry_ids)


def test_it_ends_with_the_ledger_and_where_ids_go_back():
    assert striped_in(b"") is None
    assert striped_in(log(5)[:-1]) is None
    assert list(striped_in(log(0, 1, 3, 4, 6)).entry_ids) == [0, 1, 3, 4, 6]
    assert list(striped_in(log(0, 2, 1, 4)).entry_ids) == [0, 2]
    assert list(striped_in(log(0, 2) + log(4, ledger_id=2)).entry_ids) == [0, 2]
    assert list(striped_in(log(0, 2, 4)[:-1]).entry_ids) == [0, 2]
    assert list(striped_in(log(0, 2) + bytes(200)).entry_ids) == [0, 2]


def test_what_is_behind_a_run():
    data = log(3, 4, 7) + log(8, ledger_id=2)
    run = entries.run_in(data)
    assert goes_on(data, run.offsets[-1], run)
    assert not goes_on(log(3, 4, 2), run.offsets[-1], run)
    assert not goes_on(log(3, 4) + log(8, ledger_id=2), run.offsets[-1], run)


@given(st.sets(st.integers(0, 40), min_size=1))
def test_each_entry_begins_the_run_of_those_behind_it_without_a_gap(ids):
    striped = striped_in(log(*sorted(ids)))
    for entry_id in range(42):
        run = striped.run_from(entry_id)
        if entry_id not in ids:
            assert run is None
            continue
        last = min(i for i in range(entry_id, 43) if i not in ids) - 1
        assert (run.first, run.last) == (entry_id, last)
        assert run.blob == log(*range(entry_id, last + 1))
    assert striped.count_intact() == len(ids)


def test_a_damaged_entry_ends_what_is_intact():
    data = bytearray(log(0, 2, 4))
    data[-1] ^= 1
    striped = striped_in(bytes(data))
    assert striped.count_intact() == 2
    assert list(striped.cut(2).entry_ids) == [0, 2]
    assert striped.cut(2).blob == log(0, 2)


def test_the_cache_finds_an_entry_or_its_gap():
    cache = ReadCache(100_000)
    cache.put(striped_in(log(0, 1, 3, 4, 6)))
    assert entries.entry_of(cache.find(1, 3), 3) == record(1, 3)[4:]
    assert cache.find(1, 2) is None
    assert cache.leads_to(1, 7)
    assert cache.leads_to(1, 70)
    assert not cache.leads_to(1, 71)
    assert not cache.leads_to(1, 5)
    cache.put(striped_in(log(7, 9)))
    assert cache.find(1, 6) is not None
    cache.drop(1, 6)
    assert cache.find(1, 6) is None
    assert cache.find(1, 9) is not None
