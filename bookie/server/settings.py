"""What can be set on a bookie. Defaults fit a server that lives in 100 MB of memory."""

from msgspec import Struct

MIB = 1024 * 1024


class BookieSettings(Struct, frozen=True):
    """One bookie: journal, caches, checkpoints, housekeeping, limits."""

    bookie_id: str = "embedded"
    """Its name in ledger metadata and in its cookie."""
    sync: bool = True
    """Sync before acknowledging; else acknowledge after the write and sync each second."""

    journal_size_max_bytes: int = 64 * MIB
    """Of a journal file; the first ones after a start are smaller."""
    journal_spares_max: int = 2
    """Old journal files kept, zeroed, to be written again."""
    journal_queue_bytes_max: int = 16 * MIB
    """Waiting for the sync: beyond it `congested`."""
    burst_bytes_max: int = 48 * MIB
    """What may come in spite of that, for it was on its way already; of entries twice as much, as
    they are larger than what they hold. Beyond it appends fail."""

    write_cache_bytes: int = 32 * MIB
    """Both halves together. A full half is written out; both full: `congested`."""
    read_cache_bytes: int = 16 * MIB
    """Runs read from entry logs, the oldest go first."""
    read_chunk_bytes: int = 256 * 1024
    """Read from an entry log at once when a ledger is read in order."""
    block_cache_bytes: int = 8 * MIB
    """RocksDB's, for both indexes."""
    read_threads_max: int = 4

    checkpoint_interval_seconds: float = 10.0
    entry_log_size_max_bytes: int = 1024 * MIB

    gc_interval_seconds: float = 60.0
    minor_compaction_threshold: float = 0.2
    minor_compaction_interval_seconds: float = 3600.0
    major_compaction_threshold: float = 0.8
    major_compaction_interval_seconds: float = 86_400.0

    disk_usage_threshold: float = 0.95
    """Above this part of the disk nothing is written."""
    disk_usage_low_mark: float = 0.94
    """Below it, writing goes on."""
    disk_check_interval_seconds: float = 10.0

    scrub_bytes_per_second: int = MIB
    """Of entry logs, read through for rot; 0: not at all."""
