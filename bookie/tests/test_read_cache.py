"""Runs read from the disk, the oldest forgotten first."""

from bookie.entries import seal
from bookie.read_cache import ReadCache


def run(ledger_id, first, size=1000):
    return seal(ledger_id, first, -1, 0, [b"x" * size])


def test_found_until_there_is_no_room():
    cache = ReadCache(3 * run(1, 0).memory_bytes)
    for i in range(4):
        cache.put(run(1, i))
    assert cache.find(1, 0) is None
    assert [cache.find(1, i).first for i in (1, 2, 3)] == [1, 2, 3]
    assert cache.bytes == 3 * run(1, 0).memory_bytes


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
