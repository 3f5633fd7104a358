"""What is open, what came to nothing, and what is decided: against a log that is read naively."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.ledger.read.transaction_index import (
    ABORTED_MAX,
    ALL_ABORTED_MAX,
    TransactionIndex,
)

WRITERS = 3
steps = st.lists(
    st.tuples(st.sampled_from(["write", "commit", "abort", "other"]), st.integers(1, WRITERS)),
    max_size=40,
)


def played(story: list[tuple[str, int]]) -> TransactionIndex:
    state = TransactionIndex()
    for index, (what, writer) in enumerate(story):
        if what == "write":
            state.wrote(writer, index, (7, index), 0)
        elif what != "other":
            state.ended(writer, index, committed=what == "commit")
    return state


def fate(story: list[tuple[str, int]], index: int) -> str:
    """What becomes of the entry at an index: of its writer the next end decides."""
    what, writer = story[index]
    if what != "write":
        return "plain"
    for end, who in story[index:]:
        if who == writer and end in ("commit", "abort"):
            return end
    return "open"


@given(steps)
def test_every_entry_has_its_fate(story: list[tuple[str, int]]) -> None:
    state = played(story)
    for index, (what, writer) in enumerate(story):
        if what == "write":
            assert state.hides(writer, index) is (fate(story, index) == "abort")


@given(steps)
def test_what_is_stable_is_decided(story: list[tuple[str, int]]) -> None:
    state = played(story)
    undecided = [index for index in range(len(story)) if fate(story, index) == "open"]
    end = min(undecided, default=len(story))
    assert state.stable_index(len(story)) == end
    assert state.stable_entries(7, 0, len(story)) == end
    assert state.stable_entries(6, 0, 5) == 5
    assert state.stable_entries(8, 0, 5) == (5 if not undecided else 0)
    end = len(story) - 1
    assert state.stable_position((7, end)) == (7, state.stable_index(len(story)) - 1)
    assert state.stable_position((6, 3)) == (6, 3), "all of it is open later"


@given(steps, st.integers(0, 40), st.integers(0, 40))
def test_what_came_to_nothing_within(story: list[tuple[str, int]], first: int, size: int) -> None:
    """Whoever reads from there learns of every aborted entry that he is given."""
    state = played(story)
    end = min(first + size, len(story))
    named = {(one.key, one.first) for one in state.aborted_within(first, end)}
    for index in range(first, end):
        if fate(story, index) == "abort":
            writer = story[index][1]
            assert any(who == writer and begin <= index for who, begin in named)


@given(steps, st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_no_more_is_named_than_overlaps(
    story: list[tuple[str, int]], first: int, end: int, start: int
) -> None:
    state, restored = played(story), TransactionIndex()
    restored.restore(state.snapshot(), 0)
    for each in (state, restored):
        for _ in ("whole", "without its beginning"):
            named = [one for one in each.aborted if one.last >= first and one.first < end]
            assert each.aborted_within(first, end) == named
            each.forget_before(start)


@given(steps, st.integers(0, 40))
def test_the_beginning_of_the_log_is_forgotten(story: list[tuple[str, int]], start: int) -> None:
    state = played(story)
    state.forget_before(start)
    for index in range(min(start, len(story)), len(story)):
        what, writer = story[index]
        if what == "write":
            assert state.hides(writer, index) is (fate(story, index) == "abort")


def test_what_is_remembered_is_limited() -> None:
    state = TransactionIndex()
    for number in range(ABORTED_MAX):
        state.check_room(0)
        state.wrote((1, number), 2 * number, (7, 2 * number), 0)
        if number % 1000:  # some are open: they may be aborted
            state.ended((1, number), 2 * number + 1, committed=False)
    with pytest.raises(NotAllowed, match="49950 here"):
        state.check_room(0)
    state.forget_before(100)
    state.check_room(0)
    with pytest.raises(NotAllowed, match="250000 in all topics"):
        state.check_room(ALL_ABORTED_MAX)


@given(steps, st.integers(0, 40))
def test_restored_it_goes_on_as_before(story: list[tuple[str, int]], at: int) -> None:
    first, whole = played(story[:at]), played(story)
    again = TransactionIndex()
    again.restore(first.snapshot(), 0)
    for index, (what, writer) in list(enumerate(story))[at:]:
        if what == "write":
            again.wrote(writer, index, (7, index), 0)
        elif what != "other":
            again.ended(writer, index, committed=what == "commit")
    assert (again.open, again.aborted) == (whole.open, whole.aborted)


def test_a_commit_is_seen_before_its_marker_and_open_to_whoever_has_none() -> None:
    state, restored = TransactionIndex(), TransactionIndex()
    state.wrote("first", 0, (7, 0), 0)
    state.wrote("second", 1, (7, 1), 0)
    state.show_committed("first")
    state.show_committed("nobody")
    assert (state.stable_index(3), state.committed) == (1, 1)
    state.wrote("first", 2, (7, 2), 0)  # it was on its way
    assert state.stable_position((7, 2)) == (7, 0)
    restored.restore(state.snapshot(), 0)
    assert list(restored.open) == ["first", "second"]
    assert restored.stable_index(3) == 0
    state.ended("second", 3, committed=True)
    with pytest.raises(NotAllowed):
        state.check_none_open()
    for each in (state, restored):
        each.ended("first", 4, committed=True)
    state.check_none_open()
    assert not state.ending
    assert (state.committed, state.stable_index(5), restored.stable_index(5)) == (2, 5, 1)
