"""Where the entries of ledgers come from: bookies, or the server for who cannot reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import ReadHandle, open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.core.ledger.read.reading_plan import ReadingPlan
from magnetar.spark_connector.reading.gateway_ledger import GatewayLedger
from magnetar.spark_connector.service import LedgerFacts, ReadingService

ANY_ENTRY: Final = 1 << 62
"""The plan says what is confirmed: bookies need not be asked."""

StoredLedger = ReadHandle | GatewayLedger


class LedgerDirectory:
    """The ledgers of a query as they were planned, and, if it is asked for, as they are now."""

    def __init__(
        self, facts: LedgerFacts, connect: Callable[[], ReadingService], *, is_server: bool
    ) -> None:
        """With `is_server` the server gives the entries, too, and knows what is stored where."""
        self.is_server = is_server
        self._facts = LedgerFacts(dict(facts.ledgers), dict(facts.bookies), dict(facts.tickets))
        self._connect = connect
        self._made: ReadingService | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            self._made.close()

    @property
    def _service(self) -> ReadingService:
        """Most tasks do without, and TLS has files to read."""
        if self._made is None:
            self._made = self._connect()
        return self._made

    def opened(self, log: str, ledger_id: int) -> StoredLedger:
        """`LedgerNotFound` if the plan does not have it."""
        if self.is_server:
            return GatewayLedger(self._service, log, ledger_id)
        facts = self._facts
        source = PlannedLedgers(facts.ledgers, facts.bookies, facts.tickets)
        return open_ledger(ledger_id, source, ReadOptions(), last_confirmed=ANY_ENTRY)

    def plan(self, log: str) -> ReadingPlan | None:
        """The log as it is now; None if it is gone."""
        return self._service.topics([log]).topics.get(log)

    def renew(self, log: str, ledger_id: int) -> bool:
        """Learn the metadata of a ledger, as they are now, and have another ticket for it; whether
        the metadata are others.
        """
        if self.is_server:
            return False
        facts, found = self._facts, self._service.ledgers({log: [ledger_id]})
        changed = any(facts.ledgers.get(each) != one for each, one in found.ledgers.items())
        facts.ledgers.update(found.ledgers)
        facts.bookies.update(found.bookies)
        facts.tickets.update(found.tickets)
        return changed

    def has_ticket(self, ledger_id: int) -> bool:
        """Whether bookies are shown something that expires."""
        return ledger_id in self._facts.tickets
