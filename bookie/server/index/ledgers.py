"""The ledgers index: each ledger's key, and whether it is fenced. RocksDB with Apache's rows.

Rows (`format/ledger_row.py`) are small and change rarely. They are read when a ledger comes into
use, stay in memory while it is in use, and are written by checkpoints. Until they are synced, the
journal has them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.format.ledger_row import (
    LEDGER_ID_MAX,
    MARK_LEDGER,
    LedgerRow,
    decode_row,
    encode_mark_row,
    encode_row,
    key,
    ledger_id_of,
)
from magnetar.bookie.server.index import wear
from magnetar.bookie.server.index.locations import BATCH_PUTS_MAX
from magnetar.core.ports.database import Databases
from magnetar.core.ports.disk import Directory

MEMORY_BYTES: Final = 256 * 1024


class LedgersIndex:
    """See the module's docstring. Every method may block on the disk."""

    def __init__(self, directory: Directory, databases: Databases) -> None:
        self._database = databases.open(directory, MEMORY_BYTES, wear.reporter(directory))

    def find(self, ledger_id: int) -> LedgerRow | None:
        value = self._database.get(key(ledger_id))
        return None if value is None else decode_row(value)

    def put(self, rows: Iterable[tuple[int, LedgerRow]]) -> None:
        """Store rows; not durable before `sync`."""
        batch = self._database.batch()
        for ledger_id, row in rows:
            batch.put(key(ledger_id), encode_row(row))
            if len(batch) >= BATCH_PUTS_MAX:
                self._database.write(batch)
                batch = self._database.batch()
        if len(batch):
            self._database.write(batch)

    def put_mark(self, mark: Mark) -> None:
        """Store the mark up to which the next `sync` covers the journal."""
        batch = self._database.batch()
        batch.put(key(MARK_LEDGER), encode_mark_row(mark))
        self._database.write(batch)

    def mark(self) -> Mark | None:
        """The last mark; None in an index without one, which is new or was lost."""
        row = self.find(MARK_LEDGER)
        return None if row is None else decode_mark(row.master_key)

    def forget(self, ledger_id: int) -> None:
        self._database.delete(key(ledger_id))

    def sync(self) -> None:
        """Make all changes durable."""
        self._database.flush()

    def last_ledger(self) -> int:
        """The highest ledger with a row; -1 if there is none."""
        found = self._database.at_or_before(key(LEDGER_ID_MAX))
        return -1 if found is None else ledger_id_of(found[0])

    def ledger_ids(self) -> list[int]:
        """All ledgers with a row. Negative keys are Apache's own flags and no ledgers."""
        found = []
        for found_key, _ in self._database.from_key(key(0)):
            ledger_id = ledger_id_of(found_key)
            if ledger_id < 0:
                break  # RocksDB compares bytes as unsigned, so negative keys come last
            found.append(ledger_id)
        return found

    def read_through(self) -> Generator[int, None, None]:
        """Read every block, in small steps; `Corrupted` if one has rotted."""
        return self._database.read_through()

    def close(self) -> None:
        self._database.close()
