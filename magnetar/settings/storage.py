"""Settings of the storage tier and of the ledgers that topics keep in it.

Names are BookKeeper's and Pulsar's own, in snake case, where they have one.
"""

from typing import Annotated

from msgspec import Meta, Struct


class Storage(Struct, frozen=True):
    """The embedded bookie: its directory, its journal, its caches, its housekeeping."""

    data_dir: Annotated[
        str,
        Meta(
            description="Directory of everything that is kept; made if there is none.", min_length=1
        ),
    ] = "./data"
    sync: Annotated[
        bool,
        Meta(description="Sync to the disk before acknowledging; else a power cut loses data."),
    ] = True
    journal_max_size_mb: Annotated[
        int,
        Meta(description="A journal file is followed by a new one at this size.", ge=1, le=2048),
    ] = 64
    journal_max_backups: Annotated[
        int, Meta(description="Old journal files that are kept to be written again.", ge=0)
    ] = 2
    journal_queue_bytes: Annotated[
        int, Meta(description="Waiting for the journal: beyond it nobody is read.", ge=64 * 1024)
    ] = 16 * 1024 * 1024
    write_cache_max_size_mb: Annotated[
        int, Meta(description="Entries gathered, in two halves, before they are sorted away.", ge=2)
    ] = 32
    read_cache_max_size_mb: Annotated[
        int, Meta(description="What was read from the disk and ahead of readers.", ge=1)
    ] = 16
    read_ahead_bytes: Annotated[
        int, Meta(description="Read at once when a ledger is read in order.", ge=4096)
    ] = 256 * 1024
    read_threads: Annotated[
        int, Meta(description="Threads that read from the disk.", ge=1, le=64)
    ] = 4
    index_cache_size_mb: Annotated[int, Meta(description="Blocks of the location index.", ge=1)] = 8
    flush_interval_seconds: Annotated[
        float, Meta(description="Time between checkpoints, if there is anything new.", gt=0)
    ] = 10.0
    entry_log_size_limit_mb: Annotated[
        int, Meta(description="An entry log is followed by a new one at this size.", ge=1, le=2047)
    ] = 1024
    gc_wait_seconds: Annotated[
        float, Meta(description="Time between looks for entry logs that can go.", gt=0)
    ] = 60.0
    minor_compaction_threshold: Annotated[
        float, Meta(description="Logs with a smaller live part are rewritten often.", ge=0, le=1)
    ] = 0.2
    minor_compaction_interval_seconds: Annotated[
        float, Meta(description="How often that is; 0 for never.", ge=0)
    ] = 3600.0
    major_compaction_threshold: Annotated[
        float, Meta(description="Logs with a smaller live part are rewritten rarely.", ge=0, le=1)
    ] = 0.8
    major_compaction_interval_seconds: Annotated[
        float, Meta(description="How often that is; 0 for never.", ge=0)
    ] = 86_400.0
    disk_usage_threshold: Annotated[
        float, Meta(description="Writes are refused above this part of the disk.", gt=0, le=1)
    ] = 0.95
    disk_usage_low_water_mark: Annotated[
        float, Meta(description="And taken again below this part.", gt=0, le=1)
    ] = 0.94
    disk_check_interval_seconds: Annotated[
        float, Meta(description="Time between looks at the disk.", gt=0)
    ] = 10.0
    scrub_mb_per_second: Annotated[
        float, Meta(description="Entry logs are read through for rot at this rate; 0: not.", ge=0)
    ] = 1.0


class Ledgers(Struct, frozen=True):
    """How topics cut their log into ledgers and keep their cursors."""

    max_entries: Annotated[
        int, Meta(description="A ledger is followed by a new one at so many entries.", ge=1)
    ] = 50_000
    max_size_mb: Annotated[
        int, Meta(description="A ledger is followed by a new one at this size.", ge=1)
    ] = 2048
    min_rollover_minutes: Annotated[
        float, Meta(description="But never sooner than this after it began.", ge=0)
    ] = 10.0
    max_rollover_minutes: Annotated[
        float, Meta(description="And at latest after this time, if it holds anything.", gt=0)
    ] = 240.0
    cache_size_mb: Annotated[
        int, Meta(description="Newest entries of all topics, kept for consumers that follow.", ge=0)
    ] = 24
    auto_skip_non_recoverable_data: Annotated[
        bool, Meta(description="Readers go on behind what cannot be read; else they wait there.")
    ] = False
    cursor_flush_seconds: Annotated[
        float, Meta(description="An acknowledgment may wait so long to be stored.", ge=0)
    ] = 0.2
