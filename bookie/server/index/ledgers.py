"""What the bookie knows of each ledger: its key, whether it is fenced. RocksDB with Apache's rows.

Key: 8 bytes of ledger id. Value: protobuf `LedgerData`. Rows are small and change rarely: they are
read when a ledger is first touched, kept while it is in use, and written by checkpoints; until
they are synced the journal has them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from struct import Struct
from typing import Final

import msgspec
from google.protobuf.message import DecodeError
from rocksdict import Cache, WriteBatch

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.proto.storage_pb2 import LedgerData
from magnetar.bookie.server.index.database import BATCH_PUTS_MAX, Database
from magnetar.core.errors import Corrupted

MARK_LEDGER: Final = -0x6D61726B
"""No ledger: its row says up to where in the journal all is indexed."""
LEDGER_ID_MAX: Final = 2**63 - 1

_key = Struct(">q").pack
_unkey = Struct(">q").unpack


class LedgerRow(msgspec.Struct, frozen=True):
    """One ledger as this bookie knows it."""

    master_key: bytes
    fenced: bool


def encode_row(row: LedgerRow) -> bytes:
    data = LedgerData(exists=True, fenced=row.fenced, masterKey=row.master_key)
    return data.SerializeToString()


def decode_row(value: bytes) -> LedgerRow:
    try:
        data = LedgerData.FromString(value)
    except DecodeError as error:
        raise Corrupted("a row of the ledgers index makes no sense") from error
    return LedgerRow(data.masterKey, data.fenced)


class LedgersIndex:
    """See the module's docstring. Every method may block on the disk."""

    def __init__(self, directory: Path, cache: Cache) -> None:
        self._database = Database(directory, cache, 256 * 1024)

    def find(self, ledger_id: int) -> LedgerRow | None:
        value = self._database.get(_key(ledger_id))
        return None if value is None else decode_row(value)

    def put(self, rows: Iterable[tuple[int, LedgerRow]]) -> None:
        """Store rows; not durable before `sync`."""
        batch = WriteBatch(raw_mode=True)
        for ledger_id, row in rows:
            batch.put(_key(ledger_id), encode_row(row))
            if len(batch) >= BATCH_PUTS_MAX:
                self._database.write(batch)
                batch = WriteBatch(raw_mode=True)
        if not batch.is_empty():
            self._database.write(batch)

    def put_mark(self, mark: Mark) -> None:
        """All before it in the journal is here once the next `sync` is done."""
        data = LedgerData(exists=False, fenced=False, masterKey=mark.encode())
        self._database.put(_key(MARK_LEDGER), data.SerializeToString())

    def mark(self) -> Mark | None:
        """The last that was put; None before the first, as in an index that has been lost."""
        row = self.find(MARK_LEDGER)
        return None if row is None else decode_mark(row.master_key)

    def forget(self, ledger_id: int) -> None:
        self._database.delete(_key(ledger_id))

    def sync(self) -> None:
        """What was put or forgotten is durable when this returns."""
        self._database.flush()

    def last_ledger(self) -> int:
        """The highest ledger with a row; -1 if there is none."""
        found = self._database.at_or_before(_key(LEDGER_ID_MAX))
        return -1 if found is None else int(_unkey(found[0])[0])

    def ledger_ids(self) -> list[int]:
        """All ledgers with a row. Negative keys are Apache's own flags and no ledgers."""
        found = []
        for key, _ in self._database.from_key(_key(0)):
            (ledger_id,) = _unkey(key)
            if ledger_id < 0:
                break  # read as unsigned they come last
            found.append(int(ledger_id))
        return found

    def read_through(self) -> Generator[int, None, None]:
        """Every block, bit by bit; `Corrupted` if one has rotted."""
        return self._database.read_through()

    def close(self) -> None:
        self._database.close()
