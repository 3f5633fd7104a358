"""Lag: where readers go on, and how much is left from there."""

import pytest
from msgspec.structs import replace

from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.jobs.backlog import first_unread, lags
from magnetar.spark_connector.jobs.inspection import MESSAGES, EntryFinding, Stretch
from magnetar.spark_connector.jobs.statistics import Reader
from magnetar.spark_connector.tests.plans import plan_with

PLAN = plan_with((5, 50), (0, 0), (4, 40))
NOW = 1_000.0


def reader(ledger_id: int, entry_id: int, place: int = 0, left: int | None = None) -> Reader:
    return Reader("group", "g", "t", ledger_id, entry_id, place, left)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((10, 3), (10, 3)),
        ((10, 5), (12, 0)),
        ((11, 0), (12, 0)),
        ((12, 3), (12, 3)),
        ((12, 4), None),
        ((-1, 0), (10, 0)),
        ((99, 0), None),
    ],
)
def test_where_it_goes_on(at: tuple[int, int], expected: tuple[int, int] | None) -> None:
    found = first_unread(reader(*at), PLAN)
    assert found == (None if expected is None else Stretch("t", *expected, expected[1]))


def test_what_is_trimmed_is_passed_over() -> None:
    plan = replace(PLAN, first=Place(10, 2, 20))
    assert first_unread(reader(10, 0), plan) == Stretch("t", 10, 2, 2)


def test_all_acknowledged_out_of_order() -> None:
    assert first_unread(reader(10, 3, left=0), PLAN) is None


def entry(ledger_id: int, entry_id: int, first: int | None, end: int | None) -> EntryFinding:
    return EntryFinding("t", ledger_id, entry_id, entry_id, MESSAGES, first, end, 900_000, "")


def test_lags_the_largest_first() -> None:
    readers = [reader(12, 4), reader(12, 3, 4), reader(10, 3), Reader("group", "g", "gone", 1, 1)]
    found = [entry(12, 3, 80, 90), entry(10, 3, 30, 40)]
    every = lags(readers, {"t": PLAN}, found, NOW)
    assert [(one.reader, one.messages, one.seconds) for one in every] == [
        (readers[2], 60, 100.0), (readers[1], 6, 100.0), (readers[0], 0, 0.0),
    ]  # fmt: skip


def test_a_place_in_an_entry_that_is_gone_does_not_count() -> None:
    (one,) = lags([reader(10, 5, 7)], {"t": PLAN}, [entry(12, 0, 50, 60)], NOW)
    assert one.messages == 40


def test_an_entry_without_index_leaves_what_the_server_counts() -> None:
    (one,) = lags([reader(10, 3, left=12)], {"t": PLAN}, [entry(10, 3, None, None)], NOW)
    assert one.messages == 12
