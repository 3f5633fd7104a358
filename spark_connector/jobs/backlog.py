"""How far readers of logs are behind their ends: in messages, and in time. Pure.

    messages   the offset at the end, less that of the first message that is not acknowledged
    seconds    the age of that message, 0 if there is none

That is Kafka's lag. What is acknowledged out of order behind it counts too: Pulsar's backlog, in
entries, stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from magnetar.core.ledger.read.reading_plan import ReadingPlan
from magnetar.spark_connector.jobs.inspection import EntryFinding, Stretch
from magnetar.spark_connector.jobs.statistics import Reader


class Lag(Struct, frozen=True):
    """Of one reader in one log."""

    reader: Reader
    messages: int
    seconds: float


def first_unread(reader: Reader, plan: ReadingPlan) -> Stretch | None:
    """The entry where the reader goes on; None if it has read all, or acknowledged it."""
    if reader.unacknowledged == 0:
        return None
    place = reader.ledger_id, reader.entry_id
    end = plan.end.ledger_id, plan.end.entry_id
    first = max(place, (plan.first.ledger_id, plan.first.entry_id))
    for ledger in plan.ledgers:
        entry = first[1] if ledger.id == first[0] else 0
        if ledger.id >= first[0] and entry < ledger.entries and (ledger.id, entry) < end:
            return Stretch(reader.log, ledger.id, entry, entry)
    return None


def lags(
    readers: Iterable[Reader],
    plans: Mapping[str, ReadingPlan],
    found: Iterable[EntryFinding],
    now: float,
) -> list[Lag]:
    """The lag of each reader, the largest first; `found` are the entries of `first_unread`."""
    entries = {(one.log, one.ledger_id, one.first): one for one in found}
    every = []
    for reader in readers:
        plan = plans.get(reader.log)
        if plan is None:  # it has come since
            continue
        unread = first_unread(reader, plan)
        entry = entries.get((unread.log, unread.ledger_id, unread.first)) if unread else None
        every.append(Lag(reader, *_lag(reader, plan, entry, now)))
    return sorted(every, key=lambda one: (-one.messages, -one.seconds, one.reader.name))


def _lag(
    reader: Reader, plan: ReadingPlan, entry: EntryFinding | None, now: float
) -> tuple[int, float]:
    if entry is None:
        return 0, 0.0
    if entry.from_index is None or entry.to_index is None:  # it cannot be read
        return reader.unacknowledged or 0, 0.0
    at = entry.from_index
    if (entry.ledger_id, entry.first) == (reader.ledger_id, reader.entry_id):
        at = min(at + reader.place, entry.to_index)
    seconds = max(now - entry.publish_ms / 1000, 0.0) if entry.publish_ms > 0 else 0.0
    return max(plan.end.index - at, 0), seconds
