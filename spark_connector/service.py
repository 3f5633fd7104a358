"""Asks the server where the messages of topics are: a few requests for each query.

It runs in the driver; those who read ask bookies only.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.read.reading_plan import EntryPlace, ReadingPlan
from magnetar.spark_connector.admin_client import AdminClient

LEDGERS_AT_ONCE: Final = 1_000
READING: Final = "/admin/v2/reading"


class TopicPlans(Struct, frozen=True):
    """What is known of topics."""

    topics: Mapping[str, ReadingPlan]
    partitions: Mapping[str, int]
    """Of partitioned topics, their number."""
    missing: Sequence[str]


class _Positions(Struct, frozen=True):
    positions: Mapping[str, EntryPlace]


class _Ledgers(Struct, frozen=True):
    ledgers: Mapping[str, str]
    bookies: Mapping[str, str]
    missing: Sequence[int]


class LedgerFacts(Struct, frozen=True):
    """Metadata of ledgers, and addresses of bookies."""

    ledgers: dict[int, bytes]
    bookies: dict[str, tuple[str, int]]


class ReadingService:
    """See the module's docstring."""

    def __init__(self, urls: Sequence[str], timeout_seconds: float) -> None:
        self._server = AdminClient(urls, timeout_seconds)

    def topics(self, names: Sequence[str]) -> TopicPlans:
        found: TopicPlans = self._server.ask(
            "POST", f"{READING}/topics", {"topics": list(names)}, TopicPlans
        )
        return found

    def topics_of(self, namespace: str) -> list[str]:
        """All topics and partitions of a namespace."""
        found: list[str] = self._server.ask(
            "GET", f"/admin/v2/persistent/{namespace}", None, list[str]
        )
        return found

    def positions(
        self, offsets: Mapping[str, int], times: Mapping[str, int]
    ) -> dict[str, EntryPlace]:
        """The entries of messages, by their offsets or times."""
        body = {"offsets": offsets, "times": times}
        found: _Positions = self._server.ask("POST", f"{READING}/positions", body, _Positions)
        return dict(found.positions)

    def ledgers(self, ids: Sequence[int]) -> LedgerFacts:
        """Of those that exist."""
        found = LedgerFacts({}, {})
        for start in range(0, len(ids), LEDGERS_AT_ONCE):
            body = {"ledgers": ids[start : start + LEDGERS_AT_ONCE]}
            some = self._server.ask("POST", f"{READING}/ledgers", body, _Ledgers)
            for ledger_id, metadata in some.ledgers.items():
                found.ledgers[int(ledger_id)] = b64decode(metadata)
            for bookie, address in some.bookies.items():
                host, _, port = address.rpartition(":")
                found.bookies[bookie] = host.strip("[]"), int(port)
        return found
