"""Figures of a bookie, by the names that Apache's bookies give them in Prometheus (4.18).

`BookKeeperServerStats.java` and the `*Stats.java` beside the parts have theirs. Summaries of
theirs (with quantiles) are counts here, or histograms where the bookie measures; their labels for
directories, journals and threads are left out, and so are figures of parts that are not here:
thread pools, queues between them, caches of files. The names were compared with the page of a live
one.
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.requests.request_counters import RequestKind
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import RunningBookie
from magnetar.bookie.server.garbage.collector import Collector
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.link.statistics import LinkStatistics
from magnetar.measures import parts
from magnetar.wire.http.metrics.exposition import Family, counter, gauge, label_text

SERVER: Final = "bookkeeper_server_"
JOURNAL: Final = "bookie_journal_JOURNAL_"


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
        *_of_requests(services),
        *_of_pressure(services),
        *_of_journal(found, services),
        *_of_caches(found),
        gauge("bookie_ledger_num_dirs", "Ledger directories", running.disk.directories),
        gauge("bookie_ledger_writable_dirs", "Those with room", running.disk.with_room),
        gauge(
            "bookie_ledger_dir_usage",
            "Used part of the disk, in percent",
            100 * found.disk_used_part,
        ),
        *_of_garbage(running.collector),
    ]


def _by_success(name: str, about: str, good: float, failed: float) -> Family:
    """What dashboards ask with `success="true"`."""
    family = counter(name, about)
    family.add(good, label_text([("success", "true")]))
    family.add(failed, label_text([("success", "false")]))
    return family


def _of_requests(services: BookieServices) -> list[Family]:
    counters = services.counters
    return [
        *(
            _by_success(
                f"{SERVER}{kind.value}_count",
                "Requests answered",
                counters.good[kind],
                counters.failed[kind],
            )
            for kind in RequestKind
        ),
        counter(f"{SERVER}ADD_ENTRY_REJECTED", "Adds without room", services.storage.refused),
        counter(f"{SERVER}READ_ENTRY_REJECTED", "Reads over a limit", counters.reads_rejected),
        counter(
            f"{SERVER}READ_LAST_ENTRY_NOENTRY_ERROR",
            "Reads of the last entry of an empty ledger",
            counters.last_entries_missing,
        ),
        _by_success(
            f"{SERVER}CHANNEL_WRITE_count",
            "Responses; those that failed had no client that received",
            sum(counters.good.values()) + sum(counters.failed.values()),
            counters.reads_dropped,
        ),
    ]


def _of_pressure(services: BookieServices) -> list[Family]:
    storage = services.storage
    return [
        counter(
            f"{SERVER}ADD_ENTRY_BLOCKED_WAIT_count", "Adds at the limit", services.adds.blocked
        ),
        counter(
            f"{SERVER}READ_ENTRY_BLOCKED_WAIT_count", "Reads at the limit", services.reads.blocked
        ),
        gauge(f"{SERVER}READ_ENTRY_IN_PROGRESS", "Reads that wait", services.reads.count),
        gauge(f"{SERVER}ADD_ENTRY_IN_PROGRESS", "Adds to be synced", services.adds.count),
        counter("bookie_throttled_write_requests", "Times without room", storage.held),
        counter("bookie_rejected_write_requests", "Adds refused for that", storage.refused),
    ]


def _of_journal(found: BookieStatistics, services: BookieServices) -> list[Family]:
    synced, counters = found.journal_sync_seconds, services.counters
    limits, added = services.limits, RequestKind.ADD
    return [
        _by_success(f"{JOURNAL}SYNC_count", "Syncs of the journal", synced.count, 0),
        _by_success(f"{JOURNAL}SYNC_sum", "Milliseconds of syncs", 1000 * synced.total, 0),
        _by_success(
            f"{JOURNAL}ADD_ENTRY_count", "Adds", counters.good[added], counters.failed[added]
        ),
        _by_success(
            f"{JOURNAL}FORCE_LEDGER_count", "Forced ledgers", counters.good[RequestKind.FORCE], 0
        ),
        _by_success(
            f"{JOURNAL}FORCE_WRITE_GROUPING_TOTAL_count", "Groups written", found.journal_groups, 0
        ),
        counter(f"{JOURNAL}FORCE_WRITE_BATCH_BYTES_sum", "Bytes of those", found.journal_bytes),
        counter(f"{JOURNAL}FORCE_WRITE_BATCH_BYTES_count", "The groups", found.journal_groups),
        gauge(f"{JOURNAL}QUEUE_SIZE", "Adds that wait for a sync", services.adds.count),
        gauge(f"{JOURNAL}MEMORY_USED", "Waiting for a sync", found.journal_queue_bytes),
        gauge("bookie_JOURNAL_QUEUE_MAX_SIZE", "Their limit", limits.journal_queue_size),
        gauge("bookie_JOURNAL_DIRS", "Journals", 1),
        counter("bookie_BOOKIE_ADD_ENTRY_count", "Entries added", found.entries_added),
        counter("bookie_BOOKIE_READ_ENTRY_count", "Entries read", found.entries_read),
        counter("bookie_BOOKIE_ADD_ENTRY_BYTES_sum", "Bytes added", found.bytes_added),
        counter("bookie_BOOKIE_ADD_ENTRY_BYTES_count", "Entries added", found.entries_added),
        counter("bookie_BOOKIE_READ_ENTRY_BYTES_sum", "Bytes read", found.bytes_read),
        counter("bookie_BOOKIE_READ_ENTRY_BYTES_count", "Entries read", found.entries_read),
    ]


def _of_caches(found: BookieStatistics) -> list[Family]:
    behind = found.reads_from_read_cache + found.reads_from_disk
    return [
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
        counter("bookie_write_cache_misses", "Looked for behind the write cache", behind),
        counter("bookie_read_cache_misses", "Read from an entry log", found.reads_from_disk),
        counter(
            "bookie_readahead_batch_count_count", "Reads with neighbours", found.reads_from_disk
        ),
        counter("bookie_flush_count", "Checkpoints", found.checkpoints),
        counter("bookie_flush_sum", "Their milliseconds", 1000 * found.checkpoint_seconds.total),
    ]


def _of_garbage(collector: Collector) -> list[Family]:
    found, schedule = collector.statistics(), collector.schedule
    minor, major = schedule.minor.statistics(), schedule.major.statistics()
    locations = collector.locations.statistics()
    return [
        gauge("bookie_ACTIVE_ENTRY_LOG_TOTAL", "Entry logs that are closed", found.entry_logs),
        gauge("bookie_ACTIVE_ENTRY_LOG_SPACE_BYTES", "Live bytes in those", found.live_bytes),
        gauge("bookie_ENTRY_LOG_SPACE_BYTES", "Bytes in those", found.bytes),
        gauge("bookie_ACTIVE_LEDGER_TOTAL", "Ledgers at the last round", found.ledgers),
        counter("bookie_DELETED_LEDGER_TOTAL", "Ledgers deleted", found.ledgers_deleted),
        counter("bookie_THREAD_RUNTIME_count", "Rounds", found.rounds),
        counter("bookie_MINOR_COMPACTION_TOTAL", "Minor compactions", minor.count),
        counter("bookie_MAJOR_COMPACTION_TOTAL", "Major compactions", major.count),
        counter("bookie_ENTRY_LOCATION_COMPACTION_TOTAL", "Of locations", locations.count),
        counter(
            "bookie_RECLAIMED_DELETION_SPACE_BYTES",
            "Given back by logs without live entries",
            found.bytes_deleted,
        ),
        counter(
            "bookie_RECLAIMED_COMPACTION_SPACE_BYTES",
            "Given back by compaction",
            found.bytes_given_back,
        ),
    ]
