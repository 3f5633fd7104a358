"""Counts of the link and the storage tier as metric families, since HTTP knows neither of them."""

from magnetar.bookie.server.statistics import BookieStatistics, Histogram
from magnetar.core.link.statistics import LinkStatistics
from magnetar.measures import process
from magnetar.wire.http.metrics.exposition import Family, counter, gauge, histogram


def families(link: LinkStatistics) -> list[Family]:
    """Those of any server, but for topics and storage."""
    return [*process.families(), *_of_link(link)]


def of_bookie(store: BookieStatistics) -> list[Family]:
    """Those of storage within the server."""
    return [*_of_journal(store), *_of_shelves(store)]


def of_cluster(*, writable: bool, congested: bool) -> list[Family]:
    """Those of storage on other machines, whose bookies have metrics of their own."""
    return [_status(writable), _congested(congested)]


def _status(writable: bool) -> Family:
    return gauge("bookie_SERVER_STATUS", "1 while writes are accepted", writable)


def _congested(congested: bool) -> Family:
    return gauge("magnetar_storage_congested", "1 while writers have to wait", congested)


def _of_link(link: LinkStatistics) -> list[Family]:
    return [
        gauge("pulsar_active_connections", "Connections of the binary protocol", link.connections),
        counter("pulsar_connection_created_total_count", "Connections accepted", link.accepted),
        counter(
            "pulsar_connection_closed_total_count",
            "Connections that have ended",
            link.accepted - link.connections,
        ),
        counter("magnetar_connections_refused_total", "Connections over a limit", link.refused),
        counter("magnetar_received_bytes_total", "Bytes received", link.bytes_received),
        counter("magnetar_loop_sweeps_total", "Sweeps of the loop that had work", link.sweeps),
        gauge(
            "magnetar_loop_pause_seconds_max",
            "The longest sweep of the link over its connections since the start",
            link.longest_pause_seconds,
        ),
        gauge(
            "magnetar_loop_pause_own_seconds_max",
            "The most CPU time of such a sweep: the rest is other work of the machine",
            link.longest_own_seconds,
        ),
    ]


def _of_journal(store: BookieStatistics) -> list[Family]:
    return [
        _seconds(
            "bookie_journal_JOURNAL_SYNC_seconds",
            "Time to write and sync a commit group",
            store.journal_sync_seconds,
        ),
        counter("bookie_journal_JOURNAL_WRITE_BYTES", "Bytes written", store.journal_bytes),
        counter("magnetar_journal_groups_total", "Commit groups written", store.journal_groups),
        gauge("magnetar_journal_queue_bytes", "Waiting for a sync", store.journal_queue_bytes),
        gauge("magnetar_journal_direct", "1 if writes bypass the page cache", store.journal_direct),
    ]


def _of_shelves(store: BookieStatistics) -> list[Family]:
    return [
        _status(store.writable),
        counter("bookie_WRITE_BYTES", "Bytes of entries added", store.bytes_added),
        counter("bookie_READ_BYTES", "Bytes of entries read", store.bytes_read),
        counter("bookkeeper_server_ADD_ENTRY_count", "Entries added", store.entries_added),
        counter("bookkeeper_server_READ_ENTRY_count", "Entries read", store.entries_read),
        _congested(store.congested),
        *_of_reads(store),
        gauge("magnetar_write_cache_bytes", "Not in an entry log yet", store.write_cache_bytes),
        gauge("magnetar_read_cache_bytes", "Bytes in the read cache", store.read_cache_bytes),
        _seconds("magnetar_checkpoint_seconds", "Time of a checkpoint", store.checkpoint_seconds),
        gauge("magnetar_entry_logs", "Entry logs", store.entry_logs),
        gauge("magnetar_entry_log_bytes", "Bytes in entry logs", store.entry_log_bytes),
        gauge("magnetar_entry_log_live_bytes", "Those not deleted", store.entry_log_live_bytes),
        counter("magnetar_entry_logs_deleted_total", "Logs deleted", store.entry_logs_unlinked),
        counter("magnetar_compacted_bytes_total", "Copied to newer logs", store.bytes_compacted),
        counter("magnetar_scrubbed_bytes_total", "Bytes checked for rot", store.scrubbed_bytes),
        counter("magnetar_rotten_ranges_total", "Rotten ranges found", store.damaged_ranges),
        counter("magnetar_rotten_entries_total", "Entries in those", store.damaged_entries),
        counter("magnetar_ledgers_deleted_total", "Ledgers deleted", store.ledgers_deleted),
        gauge("magnetar_disk_used_ratio", "Used fraction of the disk", store.disk_used_part),
        gauge("magnetar_disk_free_bytes", "Free bytes of the disk", store.disk_free_bytes),
    ]


def _of_reads(store: BookieStatistics) -> list[Family]:
    """Reads of entries, by where the entries were found."""
    return [
        counter(
            "magnetar_reads_write_cache_total",
            "Entries read from the write cache",
            store.reads_from_write_cache,
        ),
        counter(
            "magnetar_reads_read_cache_total",
            "Entries read from the read cache",
            store.reads_from_read_cache,
        ),
        counter("magnetar_reads_disk_total", "Read from an entry log", store.reads_from_disk),
    ]


def _seconds(name: str, about: str, of: Histogram) -> Family:
    return histogram(name, about, of.bounds, of.counts, of.total)
