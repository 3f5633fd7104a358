"""The ledgers of one topic that are open for reading: a few, the oldest goes first.

Invariant: what is read is sealed or being written by ourselves, so that the end a reader knows of
is never behind what has been confirmed.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.ledger.ledger_owner import open_own
from magnetar.core.ports.ledger_store import LedgerReader, LedgerStore

READERS_MAX: Final = 8
"""Ledgers that a topic holds open for reading, besides the one being written."""


class Readers:
    """See the module's docstring."""

    __slots__ = ("_name", "_open", "_store")

    def __init__(self, store: LedgerStore, name: str) -> None:
        self._name = name
        self._store = store
        self._open: dict[int, LedgerReader] = {}

    async def get(self, ledger_id: int) -> LedgerReader:
        """A reader of a ledger without a writer; an unsealed one is sealed."""
        reader = self._open.get(ledger_id)
        if reader is None:
            reader = await open_own(self._store, ledger_id, self._name)
            while len(self._open) >= READERS_MAX:
                del self._open[next(iter(self._open))]
            self._open[ledger_id] = reader
        return reader

    def at_once(self, ledger_id: int) -> LedgerReader | None:
        """The reader if it is open, else None. Plain call."""
        return self._open.get(ledger_id)

    def forget(self, ledger_id: int) -> None:
        """Drop the reader of a deleted ledger."""
        self._open.pop(ledger_id, None)

    def clear(self) -> None:
        self._open.clear()
