"""What the bookie knows of each ledger: its key, whether it is fenced. RocksDB with Apache's rows.

Key: 8 bytes of ledger id. Value: protobuf `LedgerData`. Rows are small and change rarely: they are
read when a ledger is first touched, kept while it is in use, and written by checkpoints; until
they are synced the journal has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from struct import Struct

import msgspec
from google.protobuf.message import DecodeError
from rocksdict import Cache, WriteBatch

from bookie.database import BATCH_PUTS_MAX, Database
from bookie.proto.storage_pb2 import LedgerData
from core.errors import Corrupted

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

    def forget(self, ledger_id: int) -> None:
        self._database.delete(_key(ledger_id))

    def sync(self) -> None:
        """What was put or forgotten is durable when this returns."""
        self._database.flush()

    def ledger_ids(self) -> list[int]:
        """All ledgers with a row. Negative keys are Apache's own flags and no ledgers."""
        found = []
        for key, _ in self._database.from_key(_key(0)):
            (ledger_id,) = _unkey(key)
            if ledger_id < 0:
                break  # read as unsigned they come last
            found.append(int(ledger_id))
        return found

    def close(self) -> None:
        self._database.close()
