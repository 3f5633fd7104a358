"""Striping: Apache's positions, and quorums that always meet."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.client.quorum.striping import Striping


@st.composite
def stripings(draw: st.DrawFn) -> Striping:
    ensemble = draw(st.integers(1, 6))
    write = draw(st.integers(1, ensemble))
    return Striping(ensemble, write, draw(st.integers(1, write)))


def test_positions() -> None:
    """Those of `RoundRobinDistributionScheduleTest` for E = 5, W = 3, A = 2."""
    striping = Striping(5, 3, 2)
    assert striping.write_set(0) == (0, 1, 2)
    assert striping.write_set(1) == (1, 2, 3)
    assert striping.write_set(4) == (4, 0, 1)
    assert striping.write_set(9) == striping.write_set(4)


@given(stripings(), st.integers(0, 2**63 - 1))
def test_a_bookie_has_what_its_write_sets_say(striping: Striping, entry_id: int) -> None:
    having = [position for position in range(striping.ensemble) if striping.has(position, entry_id)]
    assert having == sorted(striping.write_set(entry_id))
    assert len(having) == striping.write


@given(stripings(), st.data())
def test_coverage_is_exact(striping: Striping, data: st.DataObject) -> None:
    """Covered means: no ack quorum of any entry can do without an answered bookie."""
    answered = data.draw(st.sets(st.integers(0, striping.ensemble - 1)))
    free = any(
        not answered.intersection(quorum)
        for entry_id in range(striping.ensemble)
        for quorum in combinations(striping.write_set(entry_id), striping.ack)
    )
    assert striping.is_covered(answered) == (not free)


@given(stripings(), st.data())
def test_missing_entries_were_not_confirmed(striping: Striping, data: st.DataObject) -> None:
    write_set = striping.write_set(data.draw(st.integers(0, 20)))
    missing = data.draw(st.sets(st.sampled_from(write_set)))
    confirmable = len(write_set) - len(missing) >= striping.ack
    assert (len(missing) >= striping.missing_needed) == (not confirmable)


def test_the_rule_that_is_often_written_down() -> None:
    """E - A + 1 answers are enough; with E > W fewer may be."""
    assert Striping(3, 3, 2).is_covered({0, 2})
    assert not Striping(3, 3, 2).is_covered({0})
    assert Striping(5, 2, 2).is_covered({0, 2, 4})  # the rule asks for 4
    assert not Striping(5, 2, 2).is_covered({0, 2})


@pytest.mark.parametrize("sizes", [(0, 0, 0), (3, 4, 2), (3, 2, 3), (3, 2, 0)])
def test_sizes_that_make_no_sense(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="each must be at least 1"):
        Striping(*sizes).check()
    Striping(3, 2, 2).check()
