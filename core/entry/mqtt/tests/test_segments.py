"""Segments, and that the compiled functions do what the Python ones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt import segments as module
from magnetar.core.entry.mqtt.run import head, opened, packet
from magnetar.core.entry.mqtt.segments import (
    PublishSegment,
    py_behind,
    py_renumbered,
    py_segments,
    segments,
)
from magnetar.core.kernel.errors import Corrupted


def test_packets_of_one_topic_are_one() -> None:
    one, two, other = (packet(0x32, topic, None, b"x" * 200) for topic in (b"t", b"t", b"u"))
    data = one + two + other
    assert segments(data, 0, False) == [
        PublishSegment(0, 2, 0, len(one + two), 0x32, b"t", True),
        PublishSegment(2, 1, len(one + two), len(data), 0x32, b"u", True),
    ]
    assert module.behind(data, 0, 2) == len(one + two)
    found = opened(
        head(b"", has_properties=False) + module.renumbered(data, 0, len(data), [7, 8, 9])
    )
    assert [packet.payload for packet in found] == [b"x" * 200] * 3
    assert [module.renumbered(data, 0, len(one), [258])[6:8]] == [b"\x01\x02"]


def test_what_makes_a_packet_a_segment_of_its_own() -> None:
    first, last = packet(0x30, b"t", b"", b"1"), packet(0x30, b"t", b"", b"2")
    for middle in (
        packet(0x31, b"t", b"", b"x"),
        packet(0x32, b"t", b"", b"x"),
        packet(0x30, b"tt", b"", b"x"),
        packet(0x30, b"t", b"\x01\x01", b"x"),
        packet(0x38, b"t", b"", b"x"),
    ):
        found = segments(first + middle + last, 0, True)
        assert [(one.number, one.packets) for one in found] == [(0, 1), (1, 1), (2, 1)]
    for special in (packet(0x30, b"t", b"\x01\x01", b"x"), packet(0x3A, b"t", b"", b"x")):
        assert [one.plain for one in segments(special + special, 0, True)] == [False, False]


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Corrupted as error:
        return str(error)


packets = st.builds(
    packet,
    st.sampled_from([0x30, 0x31, 0x32, 0x34, 0x3A]),
    st.sampled_from([b"t", b"u", b"long" * 40]),
    st.none() | st.sampled_from([b"", b"\x01\x01"]),
    st.binary(max_size=150),
    st.integers(1, 65_535),
)
runs = st.lists(packets, max_size=8).map(b"".join)
damaged = st.tuples(runs, st.integers(0, 300), st.integers(0, 255)).map(
    lambda one: one[0][: one[1]] + bytes((one[2],)) + one[0][one[1] + 1 :]
)


@given(runs | damaged | st.binary(max_size=80), st.integers(0, 5), st.booleans())
def test_the_twins_agree_on_segments(data: bytes, at: int, has_properties: bool) -> None:
    found = outcome(segments, data, at, has_properties)
    assert found == outcome(py_segments, data, at, has_properties)


@given(runs | damaged, st.integers(0, 12))
def test_the_twins_agree_on_what_is_behind(data: bytes, count: int) -> None:
    assert outcome(module.behind, data, 0, count) == outcome(py_behind, data, 0, count)


@given(runs, st.lists(st.integers(1, 65_535), max_size=9))
def test_the_twins_agree_on_new_identifiers(data: bytes, ids: list[int]) -> None:
    ids = ids[: sum(one.packets for one in py_segments(data, 0, False))]
    found = outcome(module.renumbered, data, 0, len(data), ids)
    assert found == outcome(py_renumbered, data, 0, len(data), ids)


@given(runs)
def test_segments_are_the_packets(data: bytes) -> None:
    """Each packet is in one, with its topic and its first byte."""
    run = list(opened(head(b"", has_properties=False) + data))
    before = len(head(b"", has_properties=False))
    for one in segments(data, 0, False):
        for each in run[one.number : one.number + one.packets]:
            assert (each.first, each.topic) == (one.first, one.topic)
        assert run[one.number].begin - before == one.begin
        assert run[one.number + one.packets - 1].end - before == one.end
    assert sum(one.packets for one in segments(data, 0, False)) == len(run)
