"""Ledgers come from the server only if it is asked for."""

import pytest

from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.spark_connector.reading.gateway_ledger import GatewayLedger
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory
from magnetar.spark_connector.service import LedgerFacts, ReadingService

FACTS = LedgerFacts({}, {})


class Answers:
    """What a server says of ledgers."""

    questions = 0
    closed = False

    def close(self) -> None:
        self.closed = True

    def ledgers(self, wanted: dict[str, list[int]]) -> LedgerFacts:
        self.questions += 1
        ((_, ids),) = wanted.items()
        tickets = dict.fromkeys(ids, b"ticket")
        return LedgerFacts(dict.fromkeys(ids, b"x"), {"b": ("h", 1)}, tickets)


def test_the_server_is_asked_for_what_is_not_in_the_plan() -> None:
    made: list[Answers] = []

    def connect() -> Answers:
        made.append(Answers())
        return made[-1]

    with LedgerDirectory(FACTS, connect, is_server=False) as directory:
        with pytest.raises(LedgerNotFound):
            directory.opened("persistent://a/b/t", 7)
        assert made == []
        assert directory.renew("persistent://a/b/t", 7)
        assert not directory.renew("persistent://a/b/t", 7), "the ticket alone is another"
        assert directory.has_ticket(7)
        assert not directory.has_ticket(8)
    assert [(each.questions, each.closed) for each in made] == [(2, True)]
    assert FACTS.ledgers == {}, "the plan stays as it was"


def test_the_server_knows_what_it_stores_where() -> None:
    service = ReadingService(["http://127.0.0.1:1"], 1.0)
    directory = LedgerDirectory(FACTS, lambda: service, is_server=True)
    assert isinstance(directory.opened("persistent://a/b/t", 7), GatewayLedger)
    assert not directory.renew("persistent://a/b/t", 7)
