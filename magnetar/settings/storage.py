"""Settings of the storage tier and of the ledgers that topics keep in it.

Names are BookKeeper's and Pulsar's own, in snake case, where they have one.
"""

from typing import Annotated

from msgspec import Meta, Struct


class Storage(Struct, frozen=True):
    """The embedded bookie: its directory, its journal, its caches, its housekeeping."""

    data_dir: Annotated[
        str, Meta(description="Directory of everything that is kept; made if there is none.")
    ] = "./data"
    sync: Annotated[
        bool,
        Meta(description="Sync to the disk before acknowledging; else a power cut loses data."),
    ] = True
    journal_max_size_mb: Annotated[
        int,
        Meta(description="A journal file is followed by a new one at this size.", ge=1, le=2048),
    ] = 512
    journal_max_backups: Annotated[
        int, Meta(description="Old journal files that are kept to be written again.", ge=0)
    ] = 1
    journal_pre_alloc_size_mb: Annotated[
        int, Meta(description="Zeroes written ahead of the journal in one piece.", ge=1, le=1024)
    ] = 16
    journal_queue_bytes: Annotated[
        int, Meta(description="Waiting for the journal: beyond it nobody is read.", ge=64 * 1024)
    ] = 64 * 1024 * 1024
    write_cache_max_size_mb: Annotated[
        int, Meta(description="Entries gathered, in two halves, before they are sorted away.", ge=2)
    ] = 64
    read_cache_max_size_mb: Annotated[
        int, Meta(description="Entries read from the disk and read ahead.", ge=1)
    ] = 32
    read_ahead_cache_batch_size: Annotated[
        int, Meta(description="Entries read ahead after a read that missed.", ge=0)
    ] = 1000
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
    disk_usage_warn_threshold: Annotated[
        float, Meta(description="The server warns above this part of the disk.", gt=0, le=1)
    ] = 0.90
    disk_usage_threshold: Annotated[
        float, Meta(description="Writes are refused above this part of the disk.", gt=0, le=1)
    ] = 0.95
    disk_check_interval_seconds: Annotated[
        float, Meta(description="Time between looks at the disk.", gt=0)
    ] = 10.0


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
    ] = 64
    mark_delete_rate: Annotated[
        float, Meta(description="Times a second that a busy cursor is stored.", gt=0)
    ] = 1.0
    max_unacked_ranges_to_persist: Annotated[
        int, Meta(description="Ranges of single acknowledgments stored with a cursor.", ge=0)
    ] = 10_000
    cursor_rollover_seconds: Annotated[
        float, Meta(description="A cursor's ledger is followed by a new one after this time.", gt=0)
    ] = 14_400.0
