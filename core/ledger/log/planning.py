"""What is told to a program that reads the ledgers of a log itself (`read/reading_plan.py`).

It is compiled: a query may ask for ten thousand logs at once, before each of its batches.
"""

from __future__ import annotations

from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, ReadingPlan


def plan_of(log: ManagedLedger) -> ReadingPlan:
    """The facts as they are now. Plain call: they fit together."""
    chain = log.chain
    confirmed_index = log.confirmed_index
    end = _place(chain.after(chain.confirmed), confirmed_index)
    undecided = log.transactions.oldest
    stable = end if undecided is None else _place(undecided.position, undecided.first)
    ledgers = [
        PlannedLedger(
            one.ledger_id,
            one.first_index,
            chain.last_entry_of(one) + 1,
            one.size,
            not one.closed_ms,
            one.begun_ms,
            one.closed_ms,
            "" if one.remaining is None else one.remaining.location,
        )
        for one in chain.segments
    ]
    first = _place(chain.first, chain.first_index(confirmed_index))
    return ReadingPlan(first, stable, end, ledgers, list(log.transactions.aborted))


def _place(position: Position, index: int) -> Place:
    return Place(position[0], position[1], index)
