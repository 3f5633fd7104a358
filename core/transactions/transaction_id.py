"""Ids of transactions over topics: two numbers, and their forms in text. Pure."""

from __future__ import annotations

from magnetar.core.transactions.transaction import Transaction

TransactionId = tuple[int, int]
"""The number of the coordinator, and that of the transaction."""


def id_of(found: Transaction) -> TransactionId:
    return id_named(found.name)


def id_named(name: str) -> TransactionId:
    """The id whose record has that name."""
    most, _, least = name.partition(".")
    return int(most), int(least)


def name_of(key: TransactionId) -> str:
    """The name of the transaction's record."""
    return f"{key[0]}.{key[1]}"


def shown(key: TransactionId) -> str:
    """As Pulsar shows an id."""
    return f"({key[0]},{key[1]})"
