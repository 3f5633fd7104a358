"""Ledgers come from the server only if it is asked for."""

import pytest

from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.spark_connector.reading.gateway_ledger import GatewayLedger
from magnetar.spark_connector.reading.stored_ledgers import opener
from magnetar.spark_connector.service import LedgerFacts, ReadingService

FACTS = LedgerFacts({}, {})


def test_from_the_server() -> None:
    service = ReadingService(["http://127.0.0.1:1"], 1.0)
    assert isinstance(opener(FACTS, service)("persistent://a/b/t", 7), GatewayLedger)


def test_from_bookies_a_ledger_must_be_known() -> None:
    with pytest.raises(LedgerNotFound):
        opener(FACTS, None)("persistent://a/b/t", 7)
