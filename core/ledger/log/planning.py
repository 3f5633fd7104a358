"""What is told to a program that reads the ledgers of a log itself (`read/reading_plan.py`).

It is compiled: a query may ask for ten thousand logs at once, before each of its batches. Whatever
a row is made of tells the log's `ChangeNotice` when it changes, because rows are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from magnetar.core.ledger.log.chain import Chain, Segment
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, ReadingPlan
from magnetar.core.ledger.read.transaction_index import Aborted

_encode: Final = msgspec.json.Encoder().encode

PlaceFields = tuple[int, int, int]
LedgerFields = tuple[int, int, int, int, bool, int, int, str]
PlanFields = tuple[PlaceFields, PlaceFields, PlaceFields, list[LedgerFields], list[Aborted]]
"""The fields of a `ReadingPlan` in their order. Tuples are made in half the time of structures."""
LedgerIds = tuple[int, ...]


def rows_of(logs: Sequence[ManagedLedger]) -> list[PlanFields]:
    """The facts as they are now. Plain call: they fit together.

    Of many logs, one part after the other is read of all: to make a row is mostly to wait for
    memory, and the processor waits for the parts of several logs at once.
    """
    chains = [log.chain for log in logs]
    indexes = [log.transactions for log in logs]
    all_segments = [chain.segments for chain in chains]
    undecided = [index.oldest for index in indexes]
    aborted = [index.aborted for index in indexes]
    end_indexes = [log.confirmed_index for log in logs]
    ends = [chain.after(chain.confirmed) for chain in chains]
    firsts = [chain.first for chain in chains]
    rows: list[PlanFields] = []
    for number, chain in enumerate(chains):
        end_index, after, first = end_indexes[number], ends[number], firsts[number]
        end = stable = (after[0], after[1], end_index)
        oldest = undecided[number]
        if oldest is not None:
            stable = (oldest.position[0], oldest.position[1], oldest.first)
        begins = (first[0], first[1], chain.first_index(end_index))
        ledgers = [_ledger_row(chain, one) for one in all_segments[number]]
        rows.append((begins, stable, end, ledgers, aborted[number]))
    return rows


def _ledger_row(chain: Chain, one: Segment) -> LedgerFields:
    remaining, closed_ms = one.remaining, one.closed_ms
    return (
        one.ledger_id,
        one.first_index,
        chain.last_entry_of(one) + 1,
        one.size,
        not closed_ms,
        one.begun_ms,
        closed_ms,
        "" if remaining is None else remaining.location,
    )


def row_of(log: ManagedLedger) -> PlanFields:
    """The facts of one log."""
    return rows_of([log])[0]


def encoded_rows(logs: Sequence[ManagedLedger]) -> list[bytes]:
    """The same in JSON."""
    return [_encode(row) for row in rows_of(logs)]


def encoded_row(log: ManagedLedger) -> bytes:
    """That of one log."""
    return _encode(row_of(log))


def ledgers_of(log: ManagedLedger) -> LedgerIds:
    """The ledgers that store it: those of its chain, and those of remaining entries."""
    segments = log.chain.segments
    if len(segments) == 1 and segments[0].remaining is None:
        return (segments[0].ledger_id,)
    found: dict[int, None] = {}
    for one in segments:
        found[one.ledger_id] = None
        found[one.stored_in] = None
    return tuple(found)


def plan_of(log: ManagedLedger) -> ReadingPlan:
    """The same with the names of its parts."""
    first, stable, end, ledgers, aborted = row_of(log)
    named = [PlannedLedger(*one) for one in ledgers]
    return ReadingPlan(Place(*first), Place(*stable), Place(*end), named, list(aborted))
