"""Which entries a fragment has, where, and who may change it."""

import pytest

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.fragments import LedgerFragment, fragments_of, replaced

STRIPED = Striping(3, 2, 2)


def a_ledger(*segments, state=ledger_metadata.OPEN, last=-1):
    ledger = ledger_metadata.fresh(("a", "b", "c"), (2, 2), {}, 1, 1)
    ledger.state, ledger.lastEntryId = state, last
    for first, ensemble in segments:
        ledger.segment.add(firstEntryId=first, ensembleMember=ensemble)
    return ledger


def test_the_last_fragment_of_an_open_ledger_is_open_and_ends_where_it_is_confirmed():
    found = fragments_of(a_ledger((10, "abd")), 13)
    assert found == [
        LedgerFragment(0, 9, ("a", "b", "c"), True),
        LedgerFragment(10, 13, ("a", "b", "d"), False),
    ]


def test_a_closed_ledger_ends_where_its_metadata_say():
    closed = a_ledger((10, "abd"), state=ledger_metadata.CLOSED, last=9)
    assert fragments_of(closed, 50)[-1] == LedgerFragment(10, 9, ("a", "b", "d"), True)


@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("position", range(3))
def test_the_first_and_last_entries_of_a_position(first, count, position):
    fragment = LedgerFragment(first, first + count - 1, ("a", "b", "c"), True)
    having = list(fragment.entries(STRIPED, {position: "x"}))
    expected = [e for e in range(first, first + count) if (position - e) % 3 < 2]
    assert having == expected
    assert list(fragment.stored(STRIPED, position)) == sorted({*expected[:1], *expected[-1:]})


def test_a_bookie_is_replaced_where_it_was_copied_for():
    ledger = a_ledger((10, "abd"), state=ledger_metadata.CLOSED, last=20)
    first, second = fragments_of(ledger, -1)
    assert replaced(ledger, first, {1: "x"})
    assert [list(each.ensembleMember) for each in ledger.segment] == [
        ["a", "x", "c"],
        ["a", "b", "d"],
    ]
    assert not replaced(ledger, first, {2: "y"}), "another client has changed it meanwhile"
    assert replaced(ledger, second, {2: "x"})
    assert not replaced(ledger, LedgerFragment(5, 9, ("a", "b", "c"), True), {0: "x"})


@pytest.mark.parametrize("state", [ledger_metadata.OPEN, ledger_metadata.IN_RECOVERY])
def test_the_last_segment_of_a_ledger_that_is_not_closed_is_its_writers(state):
    ledger = a_ledger(state=state)
    assert not replaced(ledger, LedgerFragment(0, 9, ("a", "b", "c"), True), {0: "x"})
    assert list(ledger.segment[0].ensembleMember) == ["a", "b", "c"]
