"""Figures of AutoRecovery, by the names that Apache's gives them in Prometheus (4.18,
`AuditorStats.java`, `ReplicationStats.java`). Its summaries are counts here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from magnetar.wire.http.metrics.exposition import Family, counter, gauge

if TYPE_CHECKING:
    from magnetar.bookie.replication.auto_recovery import AutoRecovery

WORKER: Final = "replication_worker_"
AUDITOR: Final = "auditor_"


def families(recovery: AutoRecovery) -> list[Family]:
    """All of them."""
    found = recovery.counters
    return [
        counter(f"{WORKER}NUM_ENTRIES_READ", "Entries read to be copied", found.entries_read),
        counter(f"{WORKER}NUM_BYTES_READ_sum", "Bytes of those", found.bytes_read),
        counter(f"{WORKER}NUM_ENTRIES_WRITTEN", "Entries stored again", found.entries_written),
        counter(f"{WORKER}NUM_BYTES_WRITTEN_sum", "Bytes of those", found.bytes_written),
        counter(
            f"{WORKER}NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED",
            "Ledgers of which something was copied",
            found.ledgers_replicated,
        ),
        counter(
            f"{WORKER}NUM_DEFER_LEDGER_LOCK_RELEASE_OF_FAILED_LEDGER",
            "Times that a ledger could not be repaired",
            found.ledgers_deferred,
        ),
        counter(
            "magnetar_recovery_ledgers_closed_total",
            "Open ledgers taken from their writers",
            found.ledgers_recovered,
        ),
        gauge(
            "magnetar_recovery_is_auditor",
            "1 if this process is the auditor",
            int(recovery.election.is_elected),
        ),
        counter(
            f"{AUDITOR}NUM_UNDER_REPLICATED_LEDGERS_count",
            "Ledgers found to lack replicas",
            found.ledgers_marked,
        ),
        counter(
            f"{AUDITOR}NUM_LEDGERS_CHECKED",
            "Ledgers looked at in full",
            found.ledgers_checked,
        ),
        counter(f"{AUDITOR}AUDIT_BOOKIES_TIME_count", "Audits of all bookies", found.audits),
    ]


def and_of_recovery(
    others: Callable[[], list[Family]], recovery: AutoRecovery | None
) -> Callable[[], list[Family]]:
    """The figures of a process that may have one beside something else."""
    if recovery is None:
        return others
    return lambda: [*others(), *families(recovery)]
