"""What a log holds, for programs that read its ledgers themselves: facts, as they travel. Pure.

A position is the next entry to read, so ranges are half-open: what is between two positions is
read once. Entries may be read before `end`; with transactions, before `stable`, and without those
of the aborted ones.
"""

from __future__ import annotations

from msgspec import Struct

from magnetar.core.entry.form import TransactionKey


class Place(Struct, frozen=True, array_like=True, gc=False):
    """A position, and the index of the first message of its entry."""

    ledger_id: int
    entry_id: int
    index: int


class EntryPlace(Struct, frozen=True, array_like=True, gc=False):
    """An entry, the index of its first message, and that of the first one of the next entry."""

    ledger_id: int
    entry_id: int
    index: int
    next_index: int


class PlannedLedger(Struct, frozen=True, omit_defaults=True, gc=False):
    """One ledger of the log."""

    id: int
    first_index: int
    entries: int
    """With those that compaction removed."""
    bytes: int
    open: bool = False
    begun_ms: int = 0
    closed_ms: int = 0
    kept: str = ""
    """Where its remaining entries are stored, if it was compacted (`RemainingEntries.location`)."""


class ReadingPlan(Struct, frozen=True, gc=False):
    """See the module's docstring."""

    first: Place
    stable: Place
    """Every transaction of what is before has ended."""
    end: Place
    ledgers: list[PlannedLedger]
    aborted: list[tuple[TransactionKey, int, int]]
    """As `Aborted`, whose own types the decoder does not see when it is compiled."""

    def ledger(self, ledger_id: int) -> PlannedLedger | None:
        """One of its ledgers; None for another log's, and for one that was deleted."""
        return next((one for one in self.ledgers if one.id == ledger_id), None)


class PlannedLedgerRow(PlannedLedger, frozen=True, array_like=True, gc=False):
    """The same without the names of its parts."""


class PlanRow(ReadingPlan, frozen=True, array_like=True, gc=False):
    """The same; a third of the bytes."""

    ledgers: list[PlannedLedgerRow]  # type: ignore[assignment]  # which are planned ledgers
