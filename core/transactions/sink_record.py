"""What is stored of a sink, and how its transactions are named. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.core.transactions.transaction import Transaction, TransactionState

PREFIX: Final = "magnetar.sink."
"""Of the names of transactions."""
NEVER: Final = -1

Attempt = tuple[int, int]
"""The writer of a transaction, and its epoch."""


class SinkRecord(Struct, frozen=True):
    """What is stored of a sink."""

    query: str
    """Who writes it: the number of a batch means something to this one only."""
    batch: int = NEVER
    """The last one that is committed."""
    winners: tuple[Attempt, ...] = ()
    """The attempts that were committed with it."""
    numbered_from: int = 0
    """The first batch that the writers below number."""
    writers: tuple[int, ...] = ()
    """Of each task the producer that numbers its rows."""
    changed_ms: int = 0


def name_of(sink: str, place: int) -> str:
    """The name of one of a sink's transactions."""
    return f"{PREFIX}{sink}.{place}"


def place_of(found: Transaction) -> int:
    """The number of a transaction among those of its sink."""
    return int(found.name.rpartition(".")[2])


def attempt_of(found: Transaction) -> Attempt:
    return found.writer, found.epoch


def is_open(found: Transaction) -> bool:
    """Whether something may still be written in it."""
    return found.state in (TransactionState.EMPTY, TransactionState.ONGOING)


def is_over(found: Transaction) -> bool:
    """Whether nothing of it is left to do, so that another attempt may begin with it."""
    return found.state in (TransactionState.COMMITTED, TransactionState.ABORTED)
