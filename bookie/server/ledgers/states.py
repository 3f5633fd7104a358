"""The ledgers in use in a bookie: the key of each, whether it is fenced, and its LAC.

A ledger comes into use with the state in its row (`format/ledger_row.py`), and leaves when nobody
writes to it: its row has all that must be kept. Rows that changed are written by the next
checkpoint; until then the journal has them.

Invariants: a ledger's key is journalled before its first entry since the start; what is in a row
that is written out was journalled before.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.server.checkpoint import Checkpointer
from magnetar.bookie.server.journal.writer import Journal
from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ports.ledger_store import Done

DELETED_MAX = 100_000
"""Deleted ledgers whose ids are remembered. Ledgers deleted before those have long left memory; the
next garbage collection removes what a late writer adds to one of them.
"""
ROWS_MAX = 50_000
"""Rows that changed since the last checkpoint; at so many one is made. Fences of ledgers without
entries would otherwise fill memory, but no half of the write cache.
"""
UNKNOWN_LAC = -2
"""Of a ledger with a row, before its last entry was read since the start; -1 is a LAC."""


class LedgerState:
    """A ledger in use here. The fields from `lac` on are for clients over the network."""

    __slots__ = (
        "explicit_lac", "fence_synced", "fenced", "fences_waiting", "heard_lac", "keyed", "lac",
        "lac_ms", "limbo", "master_key", "other_digest", "stored",
    )  # fmt: skip

    def __init__(self, master_key: bytes, *, fenced: bool) -> None:
        self.master_key = master_key
        self.fenced = fenced
        self.keyed = False
        """Whether its key has gone to the journal since the start."""
        self.fence_synced = False
        """Whether the fence is known to survive a crash."""
        self.fences_waiting = 0
        """Fences whose sync is awaited."""
        self.stored = False
        """Whether a row has it, or will have it."""
        self.lac = UNKNOWN_LAC
        """The last add confirmed, as its writer told."""
        self.heard_lac = UNKNOWN_LAC
        """What was added told while that was unknown: an entry that comes again may tell less than
        others did before the start."""
        self.lac_ms = 0
        """When that changed."""
        self.explicit_lac = b""
        """The last explicit LAC, as its client packed it; empty if there is none."""
        self.limbo = False
        """Whether entries may be missing that were acknowledged."""
        self.other_digest = False
        """Whether its entries have another digest than CRC32C, so that they cannot be judged."""

    def row(self) -> LedgerRow:
        return LedgerRow(
            self.master_key, self.fenced, self.explicit_lac, self.limbo, self.other_digest
        )


class LedgerStates:
    """See the module's docstring. All methods are plain calls on the loop."""

    def __init__(
        self,
        storage: LedgerStorage,
        journal: Journal,
        checkpointer: Checkpointer,
        wake: Callable[[], None],
    ) -> None:
        """`wake` is called when the first append waits for the journal, to hand it over soon."""
        self.in_use: dict[int, LedgerState] = {}
        self._storage = storage
        self._journal = journal
        self._checkpointer = checkpointer
        self._wake = wake

    def row(self, ledger_id: int) -> LedgerRow | None:
        return self._checkpointer.row(ledger_id) or self._storage.ledgers.find(ledger_id)

    def touch(self, ledger_id: int, master_key: bytes) -> LedgerState:
        """Bring a ledger into use, with the state in its row, if it has one."""
        if ledger_id in self._checkpointer.deleted:
            raise Fenced(f"ledger {ledger_id} is deleted")
        row = self.row(ledger_id)
        if row is None:
            state = LedgerState(master_key, fenced=False)
            state.lac = -1
        else:
            # A fence that came before any entry has left the key empty.
            state = LedgerState(row.master_key or master_key, fenced=row.fenced)
            state.explicit_lac, state.limbo = row.explicit_lac, row.limbo
            state.other_digest = row.other_digest
            state.stored = True
        self.in_use[ledger_id] = state
        return state

    def write_key(self, ledger_id: int, state: LedgerState) -> None:
        """Journal a ledger's key, once since the start."""
        self._changed(ledger_id, state)
        self.write_note(journal_format.key_note(ledger_id, state.master_key), None)
        state.keyed = state.stored = True

    def write_fence(self, ledger_id: int, state: LedgerState, done: Done) -> None:
        """Fence a ledger; `done` is called when that is durable."""
        state.fenced = True
        if not state.keyed:
            self.write_key(ledger_id, state)
        self._changed(ledger_id, state)
        self.write_note(journal_format.fence_note(ledger_id), done)

    def write_explicit_lac(self, ledger_id: int, state: LedgerState, done: Done) -> None:
        """Store the explicit LAC in the state; `done` is called when that is durable."""
        if not state.keyed:
            self.write_key(ledger_id, state)
        self._changed(ledger_id, state)
        self.write_note(journal_format.lac_note(ledger_id, state.explicit_lac), done)

    def _changed(self, ledger_id: int, state: LedgerState) -> None:
        rows = self._checkpointer.rows
        rows[ledger_id] = state.row()
        if len(rows) >= ROWS_MAX:
            self._checkpointer.request()

    def write_note(self, note: bytes, done: Done | None) -> None:
        if self._journal.append(note, done):
            self._wake()

    def release(self, ledger_id: int) -> None:
        """Forget the state of a ledger without a writer: its row has all of it."""
        self.in_use.pop(ledger_id, None)

    def is_deleted(self, ledger_id: int) -> bool:
        return ledger_id in self._checkpointer.deleted

    def deleted(self, ledger_id: int) -> None:
        """Stop storing a ledger that has left the metadata store."""
        deleted = self._checkpointer.deleted
        deleted[ledger_id] = None
        if len(deleted) > DELETED_MAX:
            del deleted[next(iter(deleted))]
        self._checkpointer.rows.pop(ledger_id, None)
        self.in_use.pop(ledger_id, None)  # a later add is refused in `touch`
