"""Where the entries of ledgers come from: bookies, or the server for who cannot reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import ReadHandle, open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.spark_connector.reading.gateway_ledger import GatewayLedger
from magnetar.spark_connector.service import LedgerFacts, ReadingService

ANY_ENTRY: Final = 1 << 62
"""The plan says what is confirmed: bookies need not be asked."""

StoredLedger = ReadHandle | GatewayLedger
Opener = Callable[[str, int], StoredLedger]
"""Opens a ledger of a log."""


def opener(facts: LedgerFacts, service: ReadingService | None) -> Opener:
    """From bookies, as the facts say; with a service, from the server."""
    if service is not None:
        return lambda log, ledger_id: GatewayLedger(service, log, ledger_id)
    source, options = PlannedLedgers(facts.ledgers, facts.bookies), ReadOptions()
    return lambda _log, ledger_id: open_ledger(ledger_id, source, options, last_confirmed=ANY_ENTRY)
