"""What differs between the transactions of protocols."""

from __future__ import annotations

from magnetar.core.transactions.kind import REUSED, TransactionKind
from magnetar.core.transactions.transaction import Transaction, TransactionState

COMMITTING = Transaction(
    "t", writer=7, epoch=3, timeout_ms=1, state=TransactionState.COMMITTING, participants=("s",)
)


def test_a_participant_that_cannot_show_a_commit_sees_it_when_it_is_carried_out() -> None:
    assert not REUSED.show(COMMITTING, "s")
    assert TransactionKind(show=lambda found, name: name in found.participants).show(
        COMMITTING, "s"
    )


def test_entries_have_the_key_of_the_writer() -> None:
    assert REUSED.key_of(COMMITTING) == 7
