"""When lost replicas are looked for and restored, by Apache's names and with its defaults."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024
DAY_SECONDS: Final = 86_400.0


class RecoverySettings(Struct, frozen=True):
    """See the module's docstring (`ServerConfiguration.java` of 4.18)."""

    lost_bookie_recovery_delay_seconds: int = 0
    """`lostBookieRecoveryDelay`: how long a single bookie may be away. The metadata has the value
    that holds for all auditors; this is what the first one writes there."""
    check_all_ledgers_seconds: float = 7 * DAY_SECONDS
    """`auditorPeriodicCheckInterval`; 0 for never."""
    verification_percentage: int = 0
    """`auditorLedgerVerificationPercentage`: how many of the entries between the first and the last
    ones such a check reads of each bookie."""
    check_bookies_seconds: float = DAY_SECONDS
    """`auditorPeriodicBookieCheckInterval`; 0 for once only."""
    open_ledger_grace_seconds: float = 30.0
    """`openLedgerRereplicationGracePeriod`: how long the writer of an open ledger may take to
    replace a lost bookie itself, before the ledger is taken from it."""
    failed_ledger_pause_seconds: float = 300.0
    """`lockReleaseOfFailedLedgerGracePeriod`: the longest pause before a ledger that could not be
    repaired is tried again."""
    error_pause_seconds: float = 5.0
    """`rwRereplicateBackoffMs`: after an error of the metadata."""
    ledgers_at_once: int = 32
    """Of which an audit reads the metadata, or checks the entries, at the same time."""
    waiting_ledgers_max: int = 1000
    """Ledgers whose lock is kept until they are tried again. With more, no other is begun."""
    batch_bytes: int = 4 * MEBIBYTE
    batch_entries_max: int = 256
    """What is read, and then written, at a time. A first batch has few entries, since their size is
    not known; each may have 5 MiB."""
    bytes_per_second_max: int = 0
    """`replicationRateByBytes`; 0 for no limit."""
