"""Ranges: what is between two positions, each entry once, whatever the shares."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.planning.ranges import (
    PIECES_MAX,
    EntryRange,
    between,
    cut,
    shared,
)
from magnetar.spark_connector.tests.plans import plan_with

SIZES = st.lists(st.tuples(st.integers(0, 30), st.integers(30, 60)), min_size=1, max_size=6)


def entries_of(ranges: list[EntryRange]) -> list[tuple[int, int]]:
    return [(one.ledger_id, entry) for one in ranges for entry in range(one.first, one.last + 1)]


@given(sizes=SIZES, data=st.data())
def test_ranges_meet_without_a_gap(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    plan = plan_with(*sizes)
    every = [(one.id, entry) for one in plan.ledgers for entry in range(one.entries)]
    first, end = (plan.first.ledger_id, 0), (plan.end.ledger_id, plan.end.entry_id)
    places = sorted(data.draw(st.lists(st.sampled_from([*every, end]))))
    bounds = [Place(*each, 0) for each in (first, *places, end)]
    found: list[tuple[int, int]] = []
    for start, stop in pairwise(bounds):
        found += entries_of(list(between("t", plan, start, stop)))
    assert found == every


@given(
    sizes=SIZES, bytes_max=st.integers(1, 5_000), least=st.integers(1, 5), most=st.integers(1, 9)
)
def test_shares_have_all_in_order(
    sizes: list[tuple[int, int]], bytes_max: int, least: int, most: int
) -> None:
    plan = plan_with(*sizes)
    ranges = list(between("t", plan, plan.first, plan.end))
    shares = shared(ranges, bytes_max, least, most)
    assert len(shares) <= max(most, 1)
    assert entries_of([one for share in shares for one in share.ranges]) == entries_of(ranges)
    if ranges:
        assert all(share.ranges for share in shares)


def test_work_is_divided_evenly() -> None:
    plan = plan_with((1000, 1000))
    ranges = list(between("t", plan, plan.first, plan.end))
    sizes = [share.bytes for share in shared(ranges, 1 << 30, 4, 8)]
    assert sizes == [25_000] * 4


def test_a_range_is_cut_no_finer_than_entries() -> None:
    one = EntryRange("t", 1, 5, 7, 1 << 30)
    assert [(each.first, each.last) for each in cut(one, 1)] == [(5, 5), (6, 6), (7, 7)]


def test_a_compacted_ledger_is_read_where_it_is_stored() -> None:
    assert EntryRange("t", 4, 0, 8, 9, kept="17 5 4").stored_in == 17
    assert EntryRange("t", 4, 0, 8, 9).stored_in == 4


def test_small_pieces_are_not_too_many() -> None:
    """Whatever size a ledger is said to have, and whatever size pieces are to have."""
    one = EntryRange("t", 1, 0, (1 << 60) - 1, 1 << 62)
    shares = shared([one], 1, 1, 4)
    assert [len(share.ranges) for share in shares] == [PIECES_MAX + 1, *[PIECES_MAX] * 3]
