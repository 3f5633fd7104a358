"""Settings of the storage tier and of the ledgers that topics keep in it.

Names are BookKeeper's and Pulsar's own, in snake case, where they have one.
"""

from typing import Annotated

from msgspec import Meta, Struct


class Storage(Struct, frozen=True):
    """The embedded bookie: its directory, journal, caches and housekeeping."""

    data_dir: Annotated[
        str,
        Meta(description="Directory for all stored data; created if missing.", min_length=1),
    ] = "./data"
    sync: Annotated[
        bool,
        Meta(description="Sync to disk before acknowledging; otherwise a power cut can lose data."),
    ] = True
    journal_max_size_mb: Annotated[
        int,
        Meta(description="Size at which a new journal file begins.", ge=1, le=2048),
    ] = 64
    journal_max_backups: Annotated[
        int, Meta(description="Old journal files kept for reuse.", ge=0)
    ] = 2
    journal_queue_bytes: Annotated[
        int,
        Meta(
            description="Bytes waiting for the journal (Apache's `journalMaxMemorySizeMb`); beyond "
            "this, no connection that writes is read.",
            ge=64 * 1024,
        ),
    ] = 16 * 1024 * 1024
    write_cache_max_size_mb: Annotated[
        int,
        Meta(
            description="Entries collected, in two halves, before they are sorted into the "
            "entry log.",
            ge=2,
        ),
    ] = 32
    read_cache_max_size_mb: Annotated[
        int, Meta(description="Entries read from disk, including those read ahead.", ge=1)
    ] = 16
    read_ahead_bytes: Annotated[
        int, Meta(description="Bytes read at once when a ledger is read sequentially.", ge=4096)
    ] = 256 * 1024
    read_threads: Annotated[int, Meta(description="Threads that read from disk.", ge=1, le=64)] = 4
    index_cache_size_mb: Annotated[
        int, Meta(description="Cache for blocks of the location index.", ge=1)
    ] = 8
    flush_interval_seconds: Annotated[
        float, Meta(description="Time between checkpoints, if there is new data.", gt=0)
    ] = 10.0
    entry_log_size_limit_mb: Annotated[
        int, Meta(description="Size at which a new entry log begins.", ge=1, le=2047)
    ] = 1024
    gc_wait_seconds: Annotated[
        float, Meta(description="Time between searches for entry logs that can be deleted.", gt=0)
    ] = 60.0
    minor_compaction_threshold: Annotated[
        float,
        Meta(
            description="Minor compaction rewrites entry logs with a smaller live fraction.",
            ge=0,
            le=1,
        ),
    ] = 0.2
    minor_compaction_interval_seconds: Annotated[
        float, Meta(description="Time between minor compactions; 0 for never.", ge=0)
    ] = 3600.0
    major_compaction_threshold: Annotated[
        float,
        Meta(
            description="Major compaction rewrites entry logs with a smaller live fraction.",
            ge=0,
            le=1,
        ),
    ] = 0.8
    major_compaction_interval_seconds: Annotated[
        float, Meta(description="Time between major compactions; 0 for never.", ge=0)
    ] = 86_400.0
    disk_usage_threshold: Annotated[
        float, Meta(description="Refuse writes above this fraction of the disk.", gt=0, le=1)
    ] = 0.95
    disk_usage_low_water_mark: Annotated[
        float, Meta(description="Accept writes again below this fraction.", gt=0, le=1)
    ] = 0.94
    disk_usage_warn_threshold: Annotated[
        float,
        Meta(
            description="No major compaction above this fraction, if it is below "
            "`disk_usage_threshold`; none at all above that.",
            gt=0,
            le=1,
        ),
    ] = 0.9
    read_only_mode_on_any_disk_full_enabled: Annotated[
        bool,
        Meta(description="Refuse writes when one of several ledger directories is full."),
    ] = False
    is_force_gc_allow_when_no_space: Annotated[
        bool,
        Meta(
            description="Compact in spite of these thresholds, at each check above "
            "`disk_usage_warn_threshold`."
        ),
    ] = False
    min_usable_size_for_high_priority_writes: Annotated[
        int,
        Meta(
            description="Bytes of a full disk that have to be free for the adds of recoveries; "
            "0 for the size of an entry log.",
            ge=0,
        ),
    ] = 0
    disk_check_interval_seconds: Annotated[
        float, Meta(description="Time between checks of disk usage.", gt=0)
    ] = 10.0
    scrub_mb_per_second: Annotated[
        float,
        Meta(
            description="Rate at which entry logs are scrubbed for rot; 0 turns scrubbing off.",
            ge=0,
        ),
    ] = 1.0


class Ledgers(Struct, frozen=True):
    """How topics split their logs into ledgers and store their cursors."""

    max_entries: Annotated[
        int, Meta(description="Number of entries at which a new ledger begins.", ge=1)
    ] = 50_000
    max_size_mb: Annotated[int, Meta(description="Size at which a new ledger begins.", ge=1)] = 2048
    min_rollover_minutes: Annotated[
        float, Meta(description="But a ledger is never closed sooner than this.", ge=0)
    ] = 10.0
    max_rollover_minutes: Annotated[
        float,
        Meta(description="And is closed after this time at the latest, unless it is empty.", gt=0),
    ] = 240.0
    cache_size_mb: Annotated[
        int, Meta(description="Newest entries of all topics, for consumers that keep up.", ge=0)
    ] = 24
    auto_skip_non_recoverable_data: Annotated[
        bool,
        Meta(description="Readers skip entries that cannot be read; otherwise they stop there."),
    ] = False
    cursor_flush_seconds: Annotated[
        float,
        Meta(
            description="Longest time before an acknowledgement is stored, "
            "unless the policy `persistence` has a rate for it.",
            ge=0,
        ),
    ] = 0.2


class BookieRequests(Struct, frozen=True):
    """Limits of requests of BookKeeper's clients, which `magnetar bookie` serves."""

    max_adds_in_progress_limit: Annotated[
        int,
        Meta(
            description="Apache's `maxAddsInProgressLimit`: adds in progress, of all connections; "
            "beyond this, those that add more are not read. 0 for no limit.",
            ge=0,
        ),
    ] = 0
    max_reads_in_progress_limit: Annotated[
        int,
        Meta(
            description="`maxReadsInProgressLimit`: the same for reads that wait.",
            ge=0,
        ),
    ] = 0
    journal_queue_size: Annotated[
        int,
        Meta(
            description="`journalQueueSize`: adds that wait for their sync; beyond this, no "
            "connection that adds is read. 0 for no limit but `storage.journal_queue_bytes`.",
            ge=0,
        ),
    ] = 10_000
    max_pending_add_requests_per_thread: Annotated[
        int,
        Meta(
            description="`maxPendingAddRequestsPerThread`: adds that came beyond "
            "`journal_queue_size` before that; more are refused, except urgent ones.",
            ge=1,
        ),
    ] = 10_000
    max_pending_read_requests_per_thread: Annotated[
        int,
        Meta(
            description="`maxPendingReadRequestsPerThread`: reads of one connection that wait, and "
            "an eighth of those of all; more are refused.",
            ge=1,
        ),
    ] = 10_000
    db_storage_max_throttle_time_ms: Annotated[
        int,
        Meta(
            description="`dbStorage_maxThrottleTimeMs`: how long connections that add are not read "
            "because storage has no room; then their adds are refused until it has.",
            ge=0,
        ),
    ] = 10_000
    wait_timeout_on_response_backpressure_ms: Annotated[
        int,
        Meta(
            description="`waitTimeoutOnResponseBackpressureMs`: how long reads wait for a client "
            "that does not receive; then they are dropped. -1 for no limit but "
            "`limits.unread_seconds`.",
            ge=-1,
        ),
    ] = -1
    close_channel_on_response_timeout: Annotated[
        bool,
        Meta(description="`closeChannelOnResponseTimeout`: then its connection is closed instead."),
    ] = False
    max_batch_read_size: Annotated[
        int,
        Meta(
            description="`maxBatchReadSize`: largest answer to a batch read, in bytes.",
            ge=1024,
            le=1 << 30,
        ),
    ] = 5 * 1024 * 1024
    netty_max_frame_size_bytes: Annotated[
        int,
        Meta(
            description="`nettyMaxFrameSizeBytes`: a larger request closes its connection.",
            ge=64 * 1024,
            le=1 << 30,
        ),
    ] = 5 * 1024 * 1024
