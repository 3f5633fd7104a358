"""Figures of a bookie, by the names that Apache's bookies give them in Prometheus (4.18).

`bookkeeper_server_stats.java` and the `*Stats.java` beside the parts have theirs. Summaries of
theirs (with quantiles) are counts here, or histograms where the bookie measures; their labels for
directories and threads are left out. The names were compared with the page of a live one.
"""

from __future__ import annotations

from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import RunningBookie
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.link.loop import LinkStatistics
from magnetar.measures import parts
from magnetar.wire.http.metrics.exposition import Family, counter, gauge, label_text


def families(
    link: LinkStatistics, running: RunningBookie, services: BookieServices, *, registered: bool
) -> list[Family]:
    """All figures. SERVER_STATUS is 1 for writable, 0 for read-only, -1 if not registered."""
    found = running.statistics()
    status = int(services.ledgers.writable) if registered else -1
    shared = [one for one in parts.of_bookie(found) if one.name != "bookie_SERVER_STATUS"]
    return [
        *parts.families(link),
        *shared,
        gauge("bookie_SERVER_STATUS", "1 writable, 0 read-only, -1 not registered", status),
        counter(
            "bookkeeper_server_ADD_ENTRY_BLOCKED_WAIT_count",
            "Adds at the limit",
            services.adds.blocked,
        ),
        counter(
            "bookkeeper_server_READ_ENTRY_BLOCKED_WAIT_count",
            "Reads at the limit",
            services.reads.blocked,
        ),
        gauge("bookkeeper_server_READ_ENTRY_IN_PROGRESS", "Reads that wait", services.reads.count),
        gauge("bookkeeper_server_ADD_ENTRY_IN_PROGRESS", "Adds to be synced", services.adds.count),
        gauge(
            "bookie_journal_JOURNAL_MEMORY_USED", "Waiting for a sync", found.journal_queue_bytes
        ),
        gauge("bookie_write_cache_size", "Bytes in the write cache", found.write_cache_bytes),
        gauge("bookie_write_cache_count", "Entries in the write cache", found.write_cache_entries),
        gauge("bookie_read_cache_size", "Bytes in the read cache", found.read_cache_bytes),
        counter(
            "bookie_write_cache_hits",
            "Entries read from the write cache",
            found.reads_from_write_cache,
        ),
        counter(
            "bookie_read_cache_hits",
            "Entries read from the read cache",
            found.reads_from_read_cache,
        ),
        counter(
            "bookie_write_cache_misses",
            "Entries looked for behind the write cache",
            found.reads_from_read_cache + found.reads_from_disk,
        ),
        counter("bookie_read_cache_misses", "Read from an entry log", found.reads_from_disk),
        counter("bookie_flush_count", "Checkpoints", found.checkpoints),
        gauge("bookie_ledger_writable_dirs", "Directories that take entries", int(found.writable)),
        gauge(
            "bookie_ledger_dir_usage",
            "Used part of the disk, in percent",
            100 * found.disk_used_part,
        ),
        *_successes(found),
        *_of_garbage(running.collector),
    ]


def _successes(found: BookieStatistics) -> list[Family]:
    """What dashboards ask with `success="true"`; of failures there are no figures."""
    synced = found.journal_sync_seconds
    figures: tuple[tuple[str, str, float], ...] = (
        ("bookkeeper_server_ADD_ENTRY_REQUEST_count", "Entries added", found.entries_added),
        ("bookkeeper_server_READ_ENTRY_REQUEST_count", "Entries read", found.entries_read),
        ("bookie_journal_JOURNAL_SYNC_count", "Syncs of the journal", synced.count),
        ("bookie_journal_JOURNAL_SYNC_sum", "Milliseconds of syncs", 1000 * synced.total),
    )
    labels = label_text([("success", "true")])
    families = []
    for name, about, value in figures:
        family = counter(name, about)
        family.add(value, labels)
        families.append(family)
    return families


def _of_garbage(collector: Collector) -> list[Family]:
    found, schedule = collector.statistics(), collector.schedule
    minor, major = schedule.minor.statistics(), schedule.major.statistics()
    return [
        gauge("bookie_ACTIVE_ENTRY_LOG_TOTAL", "Entry logs that are closed", found.entry_logs),
        gauge("bookie_ACTIVE_ENTRY_LOG_SPACE_BYTES", "Bytes in those", found.bytes),
        counter("bookie_DELETED_LEDGER_TOTAL", "Ledgers deleted", found.ledgers_deleted),
        counter("bookie_MINOR_COMPACTION_TOTAL", "Minor compactions", minor.count),
        counter("bookie_MAJOR_COMPACTION_TOTAL", "Major compactions", major.count),
    ]
