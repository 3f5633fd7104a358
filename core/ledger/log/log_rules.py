"""What the policies of a topic decide of its log, and of the cursors in it. Pure.

The log reads it where it matters, so a change has its effect from the next ledger on, or from the
next time that a cursor is saved.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.core.ledger.log.trim import RollLimits, effective
from magnetar.core.policy.policies import Effective
from magnetar.core.ports.ledger_store import Quorums

PAUSE_SECONDS_MAX: Final = 60.0
"""The longest that acknowledgements wait to be saved, however low the rate: so long they do in
Pulsar (`managedLedgerCursorPositionFlushSeconds`)."""


class LogRules(Struct, frozen=True):
    """See the module's docstring."""

    roll: RollLimits
    """When the next ledger begins."""
    quorums: Quorums | None = None
    """Of new ledgers, those of cursors too; None for what the store has been told."""
    save_pause_seconds: float = 0.0
    """The least time between two saves of a cursor for which nobody waits."""


def log_rules(usual: RollLimits, policies: Effective) -> LogRules:
    """The rules of one log; `usual` are the broker's limits."""
    compaction, persistence = policies.compaction, policies.persistence
    lag_ms = -1 if compaction is None else compaction.max_lag_ms
    roll = effective(usual, policies.ledger_limits, lag_ms)
    if persistence is None:
        return LogRules(roll)
    rate = persistence.managed_ledger_max_mark_delete_rate
    return LogRules(
        roll,
        Quorums(
            persistence.bookkeeper_ensemble,
            persistence.bookkeeper_write_quorum,
            persistence.bookkeeper_ack_quorum,
        ),
        min(1 / rate, PAUSE_SECONDS_MAX) if rate > 0 else 0.0,
    )
