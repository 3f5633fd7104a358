"""What is left of a ledger, against a plain set."""

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.log import remaining_entries
from magnetar.core.ledger.log.remaining_entries import (
    RemainingEntries,
    decoded,
    encoded,
    id_entries,
    parse_location,
)

IDS = st.sets(st.integers(0, 60), min_size=1).map(sorted)


@given(IDS, st.integers(-2, 62), st.integers(-2, 62))
def test_questions(ids: list[int], first: int, last: int) -> None:
    left = RemainingEntries(9, 100, ids)
    assert left.next(first) == next((one for one in ids if one >= first), None)
    assert left.count(first, last) == sum(first <= one <= last for one in ids)
    runs = list(left.runs(first, last))
    assert [one for low, high in runs for one in range(low, high + 1)] == [
        one for one in ids if first <= one <= last
    ]
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(runs))
    place, count = left.run(first, 3)
    if first in ids:
        assert ids[place - 100] == first
        assert 1 <= count <= 3
        assert ids[place - 100 : place - 100 + count] == list(range(first, first + count))
    else:
        assert count == 0


@given(IDS)
def test_ids_are_stored(ids: list[int]) -> None:
    assert decoded(encoded(ids), len(ids)) == ids


def test_many_ids_take_several_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaining_entries, "IDS_PER_ENTRY", 3)
    ids = [0, 1, 5, 8, 9, 100, 4_000_000_000]
    entries = encoded(ids)
    assert len(entries) == id_entries(len(ids)) == 3
    assert decoded(entries, len(ids)) == ids


@pytest.mark.parametrize(
    ("entries", "count"),
    [
        ([b"no"], 1),
        ([zlib.compress(b"abc")], 1),
        ([zlib.compress(b"\0" * 8)], 2),
        (encoded([1, 2]), 3),
        ([], 1),
        ([zlib.compress(b"\1\0\0\0" * 200_000)], 200_000),
    ],
)
def test_what_are_no_ids(entries: list[bytes], count: int) -> None:
    with pytest.raises(Corrupted):
        decoded(entries, count)


def test_where_it_is_kept_is_said() -> None:
    assert parse_location(RemainingEntries(9, 100, [3, 4]).location) == (9, 100, 2)
    for said in ("", "1 2", "x y z"):
        with pytest.raises(Corrupted):
            parse_location(said)
