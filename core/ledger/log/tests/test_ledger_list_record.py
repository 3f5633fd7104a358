"""What is stored of a chain is what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import NOWHERE, START, Chain, Segment
from magnetar.core.ledger.log.ledger_list_record import (
    BEGIN,
    DOOMED,
    NEXT_INDEX,
    beginning_of,
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
    chain = Chain()
    chain.segments = segments
    if cut:
        chain.begins_at, chain.start = index, (5, 6)
    properties = {"mine": "1", BEGIN: "1 2 3"}
    info = formats.decode_managed_ledger(encoded(chain, properties, 77, (8, 9)))
    assert info.properties == properties
    assert (info.terminated, properties[NEXT_INDEX], properties["mine"]) == ((8, 9), "77", "1")
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
    properties: dict[str, str] = {}
    encoded(Chain(), properties, 0, None, {7, 3})
    assert doomed_of(properties) == [3, 7]
    encoded(Chain(), properties, 0, None)
    assert DOOMED not in properties
    assert doomed_of(properties) == []


def test_the_size_of_what_is_listed() -> None:
    chain = Chain()
    chain.segments = [Segment(1, 0, 2, 30, 1), Segment(2, 2, 2, 12, 1), Segment(3, 4)]
    assert size_of(encoded(chain, {}, 5, None)) == 42
