"""Plans for tests: ledgers by their numbers of entries and messages."""

from magnetar.core.ledger.read.reading_plan import Place, PlannedLedger, ReadingPlan

BYTES_PER_ENTRY = 100


def plan_with(*sizes: tuple[int, int], first: int = 0) -> ReadingPlan:
    """Ledgers 10, 11, ... with so many entries and messages each; the last one is open."""
    ledgers = []
    index = first
    for number, (entries, messages) in enumerate(sizes):
        ledgers.append(
            PlannedLedger(
                10 + number,
                index,
                entries,
                entries * BYTES_PER_ENTRY,
                open=number == len(sizes) - 1,
            )
        )
        index += messages
    end = Place(9 + len(sizes), sizes[-1][0], index)
    return ReadingPlan(Place(10, 0, first), end, end, ledgers, [])
