"""What entries are, and whether their indexes meet."""

from collections.abc import Sequence

import pytest

from magnetar.spark_connector.jobs.inspection import (
    CHUNK,
    DAMAGED,
    JUMP,
    MARKER,
    MESSAGES,
    MISSING,
    EntryFinding,
    LedgerInspection,
    Stretch,
    _checked,
    merged,
)
from magnetar.spark_connector.service import LedgerFacts


def entry(number: int, kind: str, first: int | None = None, end: int | None = None) -> EntryFinding:
    return EntryFinding("t", 1, number, number, kind, first, end, 0, "")


def kinds(
    found: Sequence[EntryFinding], from_index: int | None = None, to_index: int | None = None
) -> list[tuple[str, int, int | None, int | None]]:
    stretch = Stretch("t", 1, found[0].first, found[-1].last, from_index, to_index)
    return [(one.kind, one.first, one.from_index, one.to_index) for one in _checked(found, stretch)]


def test_indexes_that_meet() -> None:
    found = [entry(0, MESSAGES, 5, 8), entry(1, MARKER, 8, 9)]
    assert kinds(found, 5, 9) == [(MESSAGES, 0, 5, 8), (MARKER, 1, 8, 9)]


@pytest.mark.parametrize("first", [7, 9])
def test_a_jump(first: int) -> None:
    found = [entry(0, MESSAGES, 5, 8), entry(1, MESSAGES, first, first + 1)]
    assert (JUMP, 1, 8, first) in kinds(found)


def test_a_jump_at_the_edges() -> None:
    found = [entry(0, MESSAGES, 5, 8)]
    assert kinds(found, 4, 8)[0] == (JUMP, 0, 4, 5)
    assert kinds(found, 5, 9)[-1] == (JUMP, 0, 8, 9)


def test_what_is_missing_has_the_indexes_that_are_left() -> None:
    found = [
        entry(0, MESSAGES, 0, 3), entry(1, MISSING), entry(2, DAMAGED), entry(3, MESSAGES, 9, 10),
    ]  # fmt: skip
    assert kinds(found)[1:3] == [(MISSING, 1, 3, 9), (DAMAGED, 2, 9, 9)]
    assert kinds([entry(4, MISSING)], 10, 12) == [(MISSING, 4, 10, 12)]


def test_entries_without_indexes() -> None:
    assert kinds([entry(0, MESSAGES), entry(1, MESSAGES)]) == [
        (MESSAGES, 0, None, None), (MESSAGES, 1, None, None),
    ]  # fmt: skip


def test_consecutive_ones_are_one() -> None:
    found = [entry(0, CHUNK, 0, 1), entry(1, CHUNK, 1, 2), entry(3, CHUNK, 3, 4), entry(4, MARKER)]
    assert [(one.kind, one.first, one.last, one.to_index) for one in merged(found)] == [
        (CHUNK, 0, 1, 2), (CHUNK, 3, 3, 4), (MARKER, 4, 4, None),
    ]  # fmt: skip


def test_a_ledger_that_is_gone() -> None:
    inspection = LedgerInspection(LedgerFacts({}, {}), {})
    (one,) = inspection.of(Stretch("t", 7, 0, 99, 0, 250))
    assert (one.kind, one.first, one.last, one.from_index, one.to_index) == (MISSING, 0, 99, 0, 250)
    assert one.detail == "the ledger has been deleted"
