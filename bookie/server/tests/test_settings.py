"""Defaults that hold what the code assumes of each other."""

from magnetar.bookie.format import entries
from magnetar.bookie.format.journal_scan import TEAR_BYTES_MAX
from magnetar.bookie.server.index.locations import BATCH_PUTS_MAX, MEMORY_PUTS_MAX
from magnetar.bookie.server.journal.groups import BATCH_BYTES_MAX
from magnetar.bookie.server.settings import BookieSettings

SETTINGS = BookieSettings()


def test_half_a_write_cache_takes_the_largest_entry_and_a_burst_beside_it():
    """Or one such entry would have the next refused (`format/entries.py`)."""
    run = entries.seal(1, 0, -1, 0, [bytes(entries.ENTRY_BYTES_MAX - entries.OVERHEAD_BYTES)])
    half = SETTINGS.write_cache_bytes // 2
    assert run.memory_bytes < half + 2 * SETTINGS.burst_bytes_max


def test_a_journal_is_much_longer_than_what_a_tear_may_reach():
    assert SETTINGS.journal_size_max_bytes > 2 * TEAR_BYTES_MAX
    assert SETTINGS.journal_size_max_bytes > BATCH_BYTES_MAX


def test_an_index_is_synced_by_marks_before_its_memory_is_full():
    """Of messages of 100 bytes, half a write cache has fewer than that (`index/locations.py`)."""
    sealed = entries.seal(1, 0, -1, 0, [bytes(100)] * 1000).memory_bytes / 1000
    assert SETTINGS.write_cache_bytes / 2 / sealed + BATCH_PUTS_MAX < MEMORY_PUTS_MAX


def test_offsets_in_an_entry_log_fit_into_a_location():
    assert SETTINGS.entry_log_size_max_bytes + entries.ENTRY_BYTES_MAX < 1 << 32


def test_marks_of_the_disk_are_in_order():
    assert 0 < SETTINGS.disk_usage_low_mark < SETTINGS.disk_usage_threshold < 1
    assert SETTINGS.disk_usage_warn_threshold < SETTINGS.disk_usage_low_mark
    assert 0 < SETTINGS.minor_compaction_threshold < SETTINGS.major_compaction_threshold < 1
