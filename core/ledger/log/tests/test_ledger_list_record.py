"""What is stored of a chain is what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import NOWHERE, START, Segment
from magnetar.core.ledger.log.ledger_list_record import (
    BEGIN,
    COMPACTED,
    DOOMED,
    NEXT_INDEX,
    CompactedLedger,
    ListRecord,
    beginning_of,
    compacted_of,
    described,
    doomed_of,
    encoded,
    segments_of,
    size_of,
)

SEGMENTS = st.lists(
    st.builds(
        Segment,
        ledger_id=st.integers(0, 2**60),
        first_index=st.integers(0, 2**60),
        entries=st.integers(1, 2**30),
        size=st.integers(0, 2**50),
        closed_ms=st.integers(1, 2**50),
        begun_ms=st.integers(0, 2**50),
        others=st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3), max_size=2),
    ),
    max_size=4,
)


@given(SEGMENTS, st.integers(0, 2**60), st.booleans())
def test_what_is_stored_is_read(segments: list[Segment], index: int, cut: bool) -> None:
    contents = ListRecord(segments, {"mine": "1", BEGIN: "1 2 3"}, terminated=(8, 9))
    if cut:
        contents = replace(contents, begins_at=index, start=(5, 6))
    contents = described(contents, 77)
    info = formats.decode_managed_ledger(encoded(contents))
    assert info.properties == contents.properties
    assert info.terminated == (8, 9)
    assert (info.properties[NEXT_INDEX], info.properties["mine"]) == ("77", "1")
    assert beginning_of(info.properties) == ((index, (5, 6)) if cut else (NOWHERE, START))
    found, _ = segments_of(info)
    for one in found:
        one.others = {name: text for name, text in one.others.items() if name in "ab"}
    assert found == segments


def test_where_it_begins_is_checked() -> None:
    assert beginning_of({}) == (NOWHERE, START)
    for said in ("", "1 2", "a b c"):
        with pytest.raises(Corrupted):
            beginning_of({BEGIN: said})


def test_what_is_doomed() -> None:
    contents = described(ListRecord([], {}, doomed=frozenset({7, 3})), 0)
    assert doomed_of(contents.properties) == [3, 7]
    contents = described(replace(contents, doomed=frozenset()), 0)
    assert DOOMED not in contents.properties
    assert doomed_of(contents.properties) == []


def test_the_size_of_what_is_listed() -> None:
    segments = [Segment(1, 0, 2, 30, 1), Segment(2, 2, 2, 12, 1), Segment(3, 4)]
    assert size_of(encoded(ListRecord(segments, {}))) == 42


def test_a_compacted_ledger() -> None:
    assert compacted_of({}) is None
    made = CompactedLedger(7, 3, 90, (5, 6), 44, 1000)
    assert compacted_of({COMPACTED: made.text}) == made
    for said in ("", "1 2 3", "1 2 3 4 5 6 x", made.text + " 1"):
        with pytest.raises(Corrupted):
            compacted_of({COMPACTED: said})
