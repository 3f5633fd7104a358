"""Pruning: whatever the filters, no row that they let pass is left out."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from magnetar.core.ledger.read.reading_plan import PlannedLedger
from magnetar.spark_connector.planning.pruning import UNPRUNED, Pruning, Span
from magnetar.spark_connector.planning.ranges import EntryRange

TOPIC = "persistent://public/default/orders"
NUMBERS = ("partition", "ledger_id", "entry_id", "offset")
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def pruning(*filters: Filter, slack_ms: int = -1) -> Pruning:
    return Pruning(filters, slack_ms)


def ledger(number: int = 10, begun_ms: int = 0, closed_ms: int = 0) -> PlannedLedger:
    return PlannedLedger(number, 0, 100, 1_000, begun_ms=begun_ms, closed_ms=closed_ms)


def test_nothing_is_pruned_without_filters() -> None:
    assert UNPRUNED.admits_log(TOPIC)
    assert UNPRUNED.admits_ledger(ledger())
    one = EntryRange(TOPIC, 10, 0, 9, 100)
    assert list(UNPRUNED.clipped([one])) == [one]


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        (EqualTo(("topic",), TOPIC), True),
        (EqualTo(("topic",), "persistent://public/default/others"), False),
        (In(("topic",), ("a", TOPIC)), True),
        (In(("topic",), ("a", None)), True),
        (Not(EqualTo(("topic",), TOPIC)), False),
        (StringStartsWith(("topic",), "persistent://public"), True),
        (StringEndsWith(("topic",), "s"), True),
        (StringContains(("topic",), "orders"), True),
        (StringContains(("topic",), "nobody"), False),
        (IsNull(("topic",)), False),
        (IsNotNull(("topic",)), True),
        (Not(IsNotNull(("topic",))), False),
        (EqualNullSafe(("topic",), None), True),
        (EqualTo(("partition",), 1), True),
        (EqualTo(("partition",), 0), False),
        (Not(In(("partition",), (0, 1))), False),
        (EqualTo(("partition",), "1"), True),
        (EqualTo(("value",), b"x"), True),
        (Not(EqualTo(("value",), b"x")), True),
        (EqualTo(("headers", "topic"), "x"), True),
    ],
)
def test_logs(wanted, admitted) -> None:
    """What is not understood is read."""
    assert pruning(wanted).admits_log(f"{TOPIC}-partition-1") is admitted


def test_a_topic_without_partitions_is_partition_0() -> None:
    assert pruning(EqualTo(("partition",), 0)).admits_log(TOPIC)
    assert not pruning(EqualTo(("partition",), 1)).admits_log(TOPIC)


def test_ledgers_by_the_times_of_their_messages() -> None:
    """Only if somebody says how far publish times are from when messages were stored."""
    early, late = (
        ledger(begun_ms=NOON_MS - 2_000, closed_ms=NOON_MS - 1_000),
        ledger(begun_ms=NOON_MS + 1_001),
    )
    since, until = GreaterThanOrEqual(("publish_time",), NOON), LessThan(("publish_time",), NOON)
    assert pruning(since).admits_ledger(early)
    assert pruning(until).admits_ledger(late)
    assert not pruning(since, slack_ms=999).admits_ledger(early)
    assert pruning(since, slack_ms=1_000).admits_ledger(early)
    assert not pruning(until, slack_ms=999).admits_ledger(late)
    assert pruning(until, slack_ms=1_001).admits_ledger(late)
    assert pruning(since, slack_ms=0).admits_ledger(ledger(begun_ms=NOON_MS - 9_000)), "open"
    assert pruning(until, slack_ms=0).admits_ledger(ledger()), "of another broker"


def test_times_are_rounded_outwards() -> None:
    halfway = EqualTo(("publish_time",), NOON + timedelta(microseconds=500))
    assert pruning(halfway).span("publish_time") == Span(NOON_MS, NOON_MS + 1)


def test_entries_are_clipped_with_their_share_of_the_bytes() -> None:
    one = EntryRange(TOPIC, 10, 0, 9, 100)
    wanted = pruning(GreaterThanOrEqual(("entry_id",), 8))
    assert list(wanted.clipped([one])) == [EntryRange(TOPIC, 10, 8, 9, 20)]
    assert list(pruning(GreaterThan(("entry_id",), 20)).clipped([one])) == []


VALUES = st.integers(-1, 12)


@st.composite
def filters(draw) -> Filter:
    column = (draw(st.sampled_from([*NUMBERS, "key"])),)
    kinds = [EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
    match draw(st.sampled_from(["compare", "in", "not", "null"])):
        case "compare":
            return draw(st.sampled_from(kinds))(column, draw(VALUES))
        case "in":
            values = draw(st.lists(VALUES | st.none(), max_size=3))
            return In(column, tuple(values))
        case "null":
            return draw(st.sampled_from([IsNull, IsNotNull]))(column)
        case _:
            return Not(draw(filters()))


def passes(one: Filter, row: dict[str, int | None]) -> bool | None:
    """As Spark would say; None for null."""
    if isinstance(one, Not):
        inner = passes(one.child, row)
        return None if inner is None else not inner
    found = row[one.attribute[0]]
    match one:
        case IsNull():
            return found is None
        case IsNotNull():
            return found is not None
        case EqualNullSafe(_, value):
            return found == value
        case In(_, values):
            if found in values and found is not None:
                return True
            return None if found is None or None in values else False
    if found is None:
        return None
    compared = {
        EqualTo: found == one.value,
        GreaterThan: found > one.value,
        GreaterThanOrEqual: found >= one.value,
        LessThan: found < one.value,
        LessThanOrEqual: found <= one.value,
    }
    return compared[type(one)]


@given(st.lists(filters(), max_size=4), st.tuples(*[st.integers(0, 11)] * 4))
def test_no_row_is_left_out_that_passes(given_filters, where) -> None:
    row: dict[str, int | None] = dict(zip(NUMBERS, where, strict=True))
    row["key"] = None
    if not all(passes(one, row) for one in given_filters):
        return
    partition, ledger_id, entry_id, offset = where
    wanted = pruning(*given_filters)
    assert wanted.admits_log(f"{TOPIC}-partition-{partition}")
    assert wanted.admits_ledger(ledger(ledger_id))
    (one,) = wanted.clipped([EntryRange(TOPIC, ledger_id, 0, 20, 100)])
    assert one.first <= entry_id <= one.last
    span = wanted.span("offset")
    assert span.least <= offset <= span.most
