"""Limits by user, client id and address, and which of them holds for a client. Pure.

A limit belongs to an entity: a user, a client id, both together, or an address; each by its name or
as the default of all others. Of the limits of one kind the most specific holds, in this order
(KIP-55, `ClientQuotaManager.java` of 4.3):

    1. this user with this client id        5. default user with default client id
    2. this user with default client id     6. default user
    3. this user                            7. this client id
    4. default user with this client id     8. default client id

What shares a limit follows from its level: with both, each pair has its own share; with a user
alone, all its clients share; with a client id alone, all its users. A default gives each its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

DEFAULT: Final = ""
"""In place of a name: all that have no limit of their own."""


class QuotaKey(StrEnum):
    """The kinds of limits, by the names in which they are stored."""

    PRODUCED_BYTES = "producer_byte_rate"
    FETCHED_BYTES = "consumer_byte_rate"
    REQUEST_TIME = "request_percentage"
    MUTATIONS = "controller_mutation_rate"
    CONNECTIONS = "connection_creation_rate"


class QuotaEntity(NamedTuple):
    """Whom a limit is for; None where that does not matter, `DEFAULT` for all others."""

    user: str | None = None
    client: str | None = None
    address: str | None = None


class QuotaScope(NamedTuple):
    """Who shares a limit; empty where that does not matter."""

    user: str = ""
    client: str = ""
    address: str = ""


class QuotaLimit(NamedTuple):
    """A limit that holds for a client, and who shares it."""

    value: float
    scope: QuotaScope


Limits = Mapping[QuotaKey, float]


class QuotaRules:
    """All limits of a server."""

    def __init__(self) -> None:
        self.by_entity: dict[QuotaEntity, Limits] = {}

    def put(self, entity: QuotaEntity, limits: Limits) -> bool:
        """Replace the limits of an entity; whether that changes anything."""
        if self.by_entity.get(entity, {}) == limits:
            return False
        if limits:
            self.by_entity[entity] = limits
        else:
            del self.by_entity[entity]
        return True

    def of_client(self, key: QuotaKey, user: str, client: str) -> QuotaLimit | None:
        """The limit for a client of a user; None for no limit."""
        for entity, scope in levels(user, client):
            limits = self.by_entity.get(entity)
            if limits is not None and key in limits:
                return QuotaLimit(limits[key], scope)
        return None

    def of_address(self, address: str) -> QuotaLimit | None:
        """The limit of new connections from an address."""
        for name in (address, DEFAULT):
            limits = self.by_entity.get(QuotaEntity(address=name))
            if limits is not None and QuotaKey.CONNECTIONS in limits:
                return QuotaLimit(limits[QuotaKey.CONNECTIONS], QuotaScope(address=address))
        return None


def levels(user: str, client: str) -> Iterator[tuple[QuotaEntity, QuotaScope]]:
    """The entities of a client from the most specific on, and who shares the limit of each."""
    both = QuotaScope(user, client)
    for name in (user, DEFAULT):
        yield QuotaEntity(name, client), both
        yield QuotaEntity(name, DEFAULT), both
        yield QuotaEntity(name), QuotaScope(user)
    yield QuotaEntity(client=client), QuotaScope(client=client)
    yield QuotaEntity(client=DEFAULT), QuotaScope(client=client)
