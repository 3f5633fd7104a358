"""Buckets of latency and size."""

from magnetar.core.ledger.log.statistics import LATENCY_SECONDS, SIZE_BYTES, WriteStatistics


def test_nothing_is_counted_at_first() -> None:
    found = WriteStatistics()
    assert (found.entries, sum(found.latencies), found.seconds, found.bytes) == (0, 0, 0.0, 0)


def test_a_bound_belongs_to_its_bucket() -> None:
    found = WriteStatistics()
    for at, seconds in enumerate(LATENCY_SECONDS):
        found.stored(1, 1, seconds, seconds)
        assert found.latencies[at] == found.ledger_latencies[at] == 1
    for at, size in enumerate(SIZE_BYTES):
        before = found.sizes[at]
        found.stored(1, size, 0.0, 0.0)
        assert found.sizes[at] == before + 1


def test_what_is_beyond_all_bounds_is_counted_too() -> None:
    found = WriteStatistics()
    found.stored(3, 3 * 2 * 1024 * 1024, 2.0, 1.5)
    assert found.latencies[-1] == found.sizes[-1] == found.entries == 3
    assert (found.seconds, found.ledger_seconds) == (6.0, 4.5)


def test_entries_of_a_run_count_by_their_mean() -> None:
    found = WriteStatistics()
    found.stored(10, 10 * 100, 0.001, 0.0001)
    assert found.sizes[0] == found.latencies[1] == 10
    assert found.ledger_latencies[0] == 10
    assert found.bytes == 1_000
