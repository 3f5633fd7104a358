"""Ids of transactions in text."""

from __future__ import annotations

from magnetar.core.transactions.transaction import Transaction
from magnetar.core.transactions.transaction_id import id_of, name_of, shown


def test_an_id_is_found_in_the_name_that_it_gives() -> None:
    key = (15, 1 << 62)
    assert id_of(Transaction(name_of(key), writer=0, epoch=0, timeout_ms=1)) == key
    assert shown(key) == "(15,4611686018427387904)"
