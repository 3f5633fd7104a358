"""Positions as they are stored in a compacted ledger."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.ledger.compacted import positions as module
from magnetar.core.ledger.compacted.positions import (
    PositionWriter,
    chunk_with,
    chunks_of,
    packed,
    unpacked,
)

POSITION = st.tuples(st.integers(0, 2**62), st.integers(0, 2**62))
POSITIONS = st.lists(POSITION, min_size=1, max_size=30, unique=True).map(sorted)


@given(POSITIONS)
def test_what_goes_in_comes_out(found: list[tuple[int, int]]) -> None:
    assert unpacked(packed(found), len(found)) == found


@given(POSITIONS, POSITION)
def test_chunks(found: list[tuple[int, int]], position: tuple[int, int]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "POSITIONS_PER_CHUNK", 3)
        writer = PositionWriter()
        for one in found:
            writer.add(one)
        *chunks, directory = writer.finished()
        assert len(chunks) == chunks_of(writer.count) == chunks_of(len(found))
    firsts = unpacked(directory, len(chunks))
    parts = [found[at : at + 3] for at in range(0, len(found), 3)]
    assert firsts == [part[0] for part in parts]
    assert [unpacked(chunk, len(part)) for chunk, part in zip(chunks, parts, strict=True)] == parts
    number = chunk_with(firsts, position)
    behind = [one for one in found if one >= position]
    rest = [one for part in parts[number:] for one in part]
    assert not behind or behind[0] in rest
    assert not any(one >= position for part in parts[:number] for one in part)


@given(st.binary(max_size=50), st.integers(0, 5))
def test_damage(data: bytes, count: int) -> None:
    with suppress(Corrupted):
        unpacked(data, count)


def test_what_is_no_positions() -> None:
    whole = packed([(1, 2), (3, 4)])
    for entry, count in ((whole, 1), (whole, 3), (packed([(3, 4), (1, 2)]), 2), (whole[:8], 2)):
        with pytest.raises(Corrupted):
            unpacked(entry, count)
