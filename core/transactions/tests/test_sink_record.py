"""The names of a sink's transactions, and which of them something is left to do for."""

import pytest

from magnetar.core.transactions.sink_record import (
    attempt_of,
    is_open,
    is_over,
    name_of,
    place_of,
)
from magnetar.core.transactions.transaction import Transaction, TransactionState


def test_names_have_numbers() -> None:
    found = Transaction(name_of("a.1", 12), 7, 3, 1000)
    assert found.name == "magnetar.sink.a.1.12"
    assert (place_of(found), attempt_of(found)) == (12, (7, 3))


@pytest.mark.parametrize("state", TransactionState)
def test_a_transaction_is_open_or_decided_or_over(state: TransactionState) -> None:
    found = Transaction("n", 7, 3, 1000, state=state)
    assert [is_open(found), found.decided, is_over(found)].count(True) == 1
