"""A plan knows its ledgers by their ids."""

from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, PlannedLedgerRow, PlanRow

END = Place(7, 3, 13)


def test_a_ledger_of_the_log_or_none() -> None:
    ledgers = [PlannedLedgerRow(5, 0, 10, 100), PlannedLedgerRow(7, 10, 3, 30)]
    plan = PlanRow(Place(5, 0, 0), END, END, ledgers, [])
    assert plan.ledger(7) == PlannedLedgerRow(7, 10, 3, 30)
    assert plan.ledger(6) is None
    assert isinstance(plan.ledger(5), PlannedLedger)
