"""Runs of acknowledgements are what the packets are one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.codec.acknowledgements import (
    KINDS,
    pack_acknowledgements,
    parse_acknowledgements,
    py_pack_acknowledgements,
    py_parse_acknowledgements,
)
from magnetar.wire.mqtt.codec.packets import PacketType

firsts = st.sampled_from(sorted(KINDS))
acknowledgements = st.tuples(firsts, st.integers(0, 65_535)).map(
    lambda one: bytes((one[0], 2)) + one[1].to_bytes(2)
)
others = st.sampled_from([b"\x40\x03\0\x01\0", b"\x30\x02\0\0", b"\xc0\0", b"\x40", b"\x40\x02\0"])


def one_by_one(data: bytes) -> tuple[int, list[int]]:
    """The reference: its first packet, and those that follow it."""
    at, ids = 0, []
    while data[at : at + 2] == data[:1] + b"\2" and len(data) >= at + 4:
        number = int.from_bytes(data[at + 2 : at + 4])
        if not number:
            break
        ids.append(number)
        at += 4
    return at, ids


@given(firsts, st.lists(acknowledgements | others, max_size=12).map(b"".join))
def test_a_run(first: int, rest: bytes) -> None:
    data = bytes((first,)) + rest[1:]
    at, found = parse_acknowledgements(data, 0)
    assert (at, [] if found is None else list(found.ids)) == one_by_one(data)
    if found is not None:
        assert found.kind is PacketType(first >> 4)
    shifted = parse_acknowledgements(b"\x40\x02" + data, 2)
    assert shifted[0] == at + 2


def test_many() -> None:
    data = b"".join(b"\x40\x02" + number.to_bytes(2) for number in range(1, 65_536))
    at, found = parse_acknowledgements(data + b"\x50\x02\0\x01", 0)
    assert found is not None
    assert (at, list(found.ids)) == (len(data), list(range(1, 65_536)))


@given(firsts, st.lists(acknowledgements | others, max_size=12).map(b"".join), st.integers(0, 60))
def test_the_compiled_function_does_the_same(first: int, rest: bytes, at: int) -> None:
    for data, begin in ((bytes((first,)) + rest[1:], 0), (b"x" * at + bytes((first,)) + rest, at)):
        assert parse_acknowledgements(data, begin) == py_parse_acknowledgements(data, begin)


@given(
    st.sampled_from([0x4002, 0x5002, 0x7002]),
    st.lists(st.integers(-1, 65_536), max_size=8)
    | st.builds(range, st.integers(65_500, 65_530), st.integers(65_500, 65_540), st.integers(1, 2)),
)
def test_packed_ones_are_parsed(begin: int, ids: Sequence[int]) -> None:
    results = []
    for function in (pack_acknowledgements, py_pack_acknowledgements):
        try:
            results.append(function(begin, ids))
        except (struct.error, OverflowError):
            results.append(None)
    assert results[0] == results[1]
    if results[0] and all(number > 0 for number in ids):
        _, found = parse_acknowledgements(results[0], 0)
        assert found is not None
        assert list(found.ids) == list(ids)
