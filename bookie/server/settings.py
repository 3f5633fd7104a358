"""The settings of a bookie. Defaults fit a server with 100 MB of memory."""

from msgspec import Struct

MIB = 1024 * 1024


class BookieSettings(Struct, frozen=True):
    """One bookie: journal, caches, checkpoints, housekeeping, limits."""

    bookie_id: str = "embedded"
    """Its name in ledger metadata and in its cookie."""
    sync: bool = True
    """Sync before acknowledging; else acknowledge after the write, and sync each second (Apache's
    `journalSyncData`)."""

    journal_seals: bool = True
    """Give each group of the journal a checksum (`format/journal.py`): for notes, and for entries
    with other digests than CRC32C."""
    entries_prove_themselves: bool = True
    """Whether all entries have a CRC32C, as those of the client in this process."""
    journal_size_max_bytes: int = 64 * MIB
    """The largest journal file; the first ones after a start are smaller."""
    journal_spares_max: int = 2
    """Old journal files that are zeroed and reused."""
    journal_queue_bytes_max: int = 16 * MIB
    """Bytes that wait for their sync; beyond it the store is `congested`."""
    burst_bytes_max: int = 48 * MIB
    """Bytes of messages that may still arrive while `congested`, because they were on their way.
    Entries, with their overhead, may have twice as many. Beyond that appends fail."""

    write_cache_bytes: int = 32 * MIB
    """The bytes of both halves. A full half is written out; if both are full: `congested`."""
    read_cache_bytes: int = 16 * MIB
    """The bytes of runs read from entry logs; the oldest are evicted."""
    read_chunk_bytes: int = 256 * 1024
    """Bytes read at once from an entry log when a ledger is read in order."""
    block_cache_bytes: int = 8 * MIB
    """RocksDB's block cache, for both indexes."""
    read_threads_max: int = 4

    checkpoint_interval_seconds: float = 10.0
    entry_log_size_max_bytes: int = 1024 * MIB

    gc_interval_seconds: float = 60.0
    minor_compaction_threshold: float = 0.2
    minor_compaction_interval_seconds: float = 3600.0
    major_compaction_threshold: float = 0.8
    major_compaction_interval_seconds: float = 86_400.0

    disk_usage_threshold: float = 0.95
    """The used part of the disk above which nothing is written."""
    disk_usage_low_mark: float = 0.94
    """The used part below which writing goes on."""
    disk_usage_warn_threshold: float = 0.90
    """The used part above which there is no major compaction."""
    any_full_is_read_only: bool = False
    """Of several disks, one that is full ends all writing."""
    force_gc_when_no_space: bool = False
    """Compaction runs in spite of a disk that is almost full or full, at each check of it."""
    high_priority_bytes_min: int = 0
    """What has to be free of a full disk for the adds of recoveries; 0: an entry log's size."""
    disk_check_interval_seconds: float = 10.0

    scrub_bytes_per_second: int = MIB
    """The rate at which entry logs are read to find rot; 0: not at all."""
