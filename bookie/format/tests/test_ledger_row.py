"""Rows of ledgers, in Apache's protobuf."""

import pytest

from magnetar.bookie.format.journal import Mark, decode_mark
from magnetar.bookie.format.ledger_row import (
    MARK_LEDGER,
    LedgerRow,
    decode_row,
    encode_mark_row,
    encode_row,
    key,
    ledger_id_of,
)
from magnetar.core.kernel.errors import Corrupted


def test_a_row_has_apaches_bytes():
    row = LedgerRow(b"\x01" * 20, fenced=True)
    assert encode_row(row) == b"\x08\x01\x10\x01\x1a\x14" + b"\x01" * 20
    assert decode_row(encode_row(row)) == row
    with pytest.raises(Corrupted):
        decode_row(b"\xff")


def test_keys_of_ledgers_are_in_their_order():
    assert key(1) < key(255) < key(256) < key(2**63 - 1)
    assert ledger_id_of(key(MARK_LEDGER)) == MARK_LEDGER
    assert key(MARK_LEDGER) > key(2**63 - 1), "behind all ledgers, for keys are unsigned"


def test_the_mark_is_a_row_of_no_ledger():
    row = decode_row(encode_mark_row(Mark(7, 512)))
    assert decode_mark(row.master_key) == Mark(7, 512)
