"""One transaction, as its coordinator keeps it."""

from __future__ import annotations

import msgspec
import pytest

from magnetar.core.transactions.transaction import (
    AT_REST,
    DECIDED,
    PendingCommit,
    Transaction,
    TransactionState,
)


@pytest.mark.parametrize("state", TransactionState)
def test_what_is_decided_comes_to_rest(state: TransactionState) -> None:
    found = Transaction("t", 1, 0, 1000, state=state)
    assert found.decided is (state in AT_REST)
    if found.decided:
        assert AT_REST[state] not in DECIDED


def test_it_takes_too_long_from_its_beginning_on() -> None:
    assert Transaction("t", 1, 0, 1000, began_ms=5, changed_ms=900).expires_ms() == 1005


def test_what_an_older_server_stored_is_read() -> None:
    """Fields have been added since: those that are absent have their defaults."""
    stored = b'{"name":"t","writer":1,"epoch":2,"timeout_ms":1000,"state":"ongoing"}'
    found = msgspec.json.decode(stored, type=Transaction)
    assert found == Transaction("t", 1, 2, 1000, state=TransactionState.ONGOING)


def test_it_is_stored_whole() -> None:
    found = Transaction(
        "t", 1, 2, 3, logs=("a",), participants=("g",), pending=(PendingCommit("g", b"\xff"),)
    )
    assert msgspec.json.decode(msgspec.json.encode(found), type=Transaction) == found


def test_the_first_ones_begin_it_and_none_is_twice_in_it() -> None:
    found = Transaction("t", 1, 0, 1000).extended(5, ["a", "b"], ["p"], {"a": "A"})
    assert found.state is TransactionState.ONGOING
    assert found.began_ms == 5
    found = found.extended(9, ["b", "c"], ["q"], {"c": "C"}, pending=[PendingCommit("q", b"")])
    assert found.began_ms == 5
    assert (found.logs, found.participants) == (("a", "b", "c"), ("p", "q"))
    assert found.spellings == {"a": "A", "c": "C"}
    assert len(found.pending) == 1
    decided = msgspec.structs.replace(found, state=TransactionState.COMMITTING)
    with pytest.raises(AssertionError):
        decided.extended(9, ["d"], [], {})
