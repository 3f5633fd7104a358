"""Rows of ledgers, in Apache's protobuf."""

import pytest
from rocksdict import Cache

from magnetar.bookie.server.index.ledgers import LedgerRow, LedgersIndex, decode_row, encode_row
from magnetar.core.errors import Corrupted


def test_a_row_has_apaches_bytes():
    row = LedgerRow(b"\x01" * 20, fenced=True)
    assert encode_row(row) == b"\x08\x01\x10\x01\x1a\x14" + b"\x01" * 20
    assert decode_row(encode_row(row)) == row
    with pytest.raises(Corrupted):
        decode_row(b"\xff")


def test_rows_are_kept_and_listed(tmp_path):
    ledgers = LedgersIndex(tmp_path / "ledgers", Cache(1 << 20))
    rows = [(i, LedgerRow(b"k", fenced=i % 2 == 0)) for i in range(500)]
    ledgers.put([*rows, (-3, LedgerRow(b"", fenced=False))])
    ledgers.forget(7)
    ledgers.close()
    ledgers = LedgersIndex(tmp_path / "ledgers", Cache(1 << 20))
    assert ledgers.ledger_ids() == [i for i in range(500) if i != 7]
    assert ledgers.find(8) == LedgerRow(b"k", fenced=True)
    assert ledgers.find(7) is None
    ledgers.close()
