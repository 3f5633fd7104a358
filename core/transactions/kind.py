"""What differs between the transactions of protocols, as their coordinator sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from magnetar.core.entry.form import TransactionKey
from magnetar.core.ports.ledger_store import Done
from magnetar.core.transactions.transaction import Transaction, writer_of

Show = Callable[[Transaction, str], bool]
Store = Callable[[Transaction, str, Done], None]
Settle = Callable[[Transaction, str], Awaitable[None]]


def nobody_sees(found: Transaction, participant: str) -> bool:
    """`Show` where outcomes are seen when they are carried out."""
    del found, participant
    return False


def nothing_to_store(found: Transaction, participant: str, done: Done) -> None:
    """`Store` where participants have nothing of their own."""
    del found, participant
    done(None)


class TransactionKind(Struct, frozen=True):
    """What differs between the transactions of protocols."""

    key_of: Callable[[Transaction], TransactionKey] = writer_of
    """The key of its entries."""
    show: Show = nobody_sees
    """Has one participant see a commit, as a plain call; False if it is not loaded."""
    store: Store = nothing_to_store
    """Calls back when one participant, which has just seen a commit, has stored it."""
    settle: Settle | None = None
    """Has one participant carry out the decision, perhaps not for the first time; repeated after a
    `BrokerError`."""
    is_reused: bool = True
    """Whether the next transaction has the same name: else the record is deleted at the end."""
    decided: Callable[[Transaction, bool, bool], object] | None = None
    """Is told of each decision when it is stored: whether to commit, and whether because the
    transaction's time was over."""


REUSED: Final = TransactionKind()
"""Transactions that a writer has one after the other, under one name."""
