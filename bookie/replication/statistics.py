"""What auditor and replication worker have done since the process began."""

from __future__ import annotations

from msgspec import Struct


class ReplicationCounters(Struct):
    """Counters; behind them the names of Apache's metrics (`ReplicationStats.java` of 4.18)."""

    entries_read: int = 0
    """NUM_ENTRIES_READ."""
    bytes_read: int = 0
    """NUM_BYTES_READ."""
    entries_written: int = 0
    """NUM_ENTRIES_WRITTEN."""
    bytes_written: int = 0
    """NUM_BYTES_WRITTEN."""
    ledgers_replicated: int = 0
    """Of which a fragment was: NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED."""
    ledgers_deferred: int = 0
    """That could not be repaired, and wait: NUM_DEFER_LEDGER_LOCK_RELEASE_OF_FAILED_LEDGER."""
    ledgers_recovered: int = 0
    """Open ones, taken from their writers."""
    ledgers_marked: int = 0
    """That were not known to lack replicas: NUM_UNDER_REPLICATED_LEDGERS."""
    ledgers_checked: int = 0
    """NUM_LEDGERS_CHECKED."""
    audits: int = 0
    """Of all bookies: AUDIT_BOOKIES_TIME."""
