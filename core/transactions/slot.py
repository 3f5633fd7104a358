"""A transactional id in memory: its record, its transaction, and how far a decision has come.

    rest    is set while no decision is being carried out
    seen    the same, and earlier: while none is to be seen yet by somebody

The coordinator changes it (`coordinator.py`), with the lock held or in one turn of the loop.
"""

from __future__ import annotations

import trio

from magnetar.core.cluster.owned_record import OwnedRecord
from magnetar.core.transactions.transaction import Transaction


class TransactionSlot:
    """A transactional id, and its transaction if there is one."""

    __slots__ = (
        "begun",
        "lock",
        "logs",
        "lost",
        "name",
        "over",
        "participants",
        "record",
        "rest",
        "seen",
        "transaction",
    )

    def __init__(self, name: str, record: OwnedRecord[Transaction]) -> None:
        self.name = name
        self.record = record
        self.transaction: Transaction | None = None
        """The record's value, or `begun`; looked up for each batch."""
        self.begun: Transaction | None = None
        """One that includes nothing yet, so that nothing of it need be found after a crash: it is
        not stored."""
        self.logs: frozenset[str] = frozenset()
        self.participants: frozenset[str] = frozenset()
        """The transaction's, to be looked up in."""
        self.over = False
        """Everybody sees the outcome, and there is no transaction any more: only its record is left
        to be deleted, when everything has the outcome."""
        self.lost = False
        """Another coordinator has taken over the transactional id: change nothing more."""
        self.lock = trio.Semaphore(1, max_value=1)
        """Held while the transaction is changed, by a task or until a plain call is called back."""
        self.rest = trio.Event()
        """Set while no decision is being carried out."""
        self.rest.set()
        self.seen = self.rest
        """Set while no decision is to be seen yet."""
