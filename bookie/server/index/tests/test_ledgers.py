"""Rows of ledgers: kept, listed, forgotten."""

from magnetar.bookie.format.ledger_row import LedgerRow
from magnetar.bookie.machine.rocksdb import RocksDatabases
from magnetar.bookie.server.index.ledgers import LedgersIndex
from magnetar.bookie.tests.real_disk import directory_at


def test_rows_are_kept_and_listed(tmp_path):
    ledgers = LedgersIndex(directory_at(tmp_path / "ledgers"), RocksDatabases(1 << 20))
    rows = [(i, LedgerRow(b"k", fenced=i % 2 == 0)) for i in range(500)]
    ledgers.put([*rows, (-3, LedgerRow(b"", fenced=False))])
    ledgers.forget(7)
    ledgers.close()
    ledgers = LedgersIndex(directory_at(tmp_path / "ledgers"), RocksDatabases(1 << 20))
    assert ledgers.ledger_ids() == [i for i in range(500) if i != 7]
    assert ledgers.find(8) == LedgerRow(b"k", fenced=True)
    assert ledgers.find(7) is None
    ledgers.close()
