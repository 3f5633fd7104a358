"""Runs as bytes: packets as they came, and whatever else somebody stored."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.mqtt import run as runs
from magnetar.core.kernel.errors import Corrupted

FIRST = b"\x30\x05\x00\x01tab"
"""QoS 0, topic t, payload ab, of 3.1.1."""
SECOND = b"\x3d\x0a\x00\x02a/b\x00\x09hi!"[:-1]
"""DUP, QoS 2, retain, with an identifier."""
PACKET = st.tuples(
    st.sampled_from([0x30, 0x31, 0x32, 0x33, 0x34, 0x3D]),
    st.binary(min_size=1, max_size=20),
    st.binary(max_size=300),
)


def test_packets_of_3_1_1() -> None:
    first = runs.packet(0x30, b"t", None, b"ab")
    assert first == FIRST
    found = list(runs.opened(runs.head(b"me", has_properties=False) + first + first))
    assert [(one.place, one.topic, one.payload) for one in found] == [
        (0, b"t", b"ab"),
        (1, b"t", b"ab"),
    ]
    assert (found[1].begin, found[1].end) == (6 + len(first), 6 + 2 * len(first))


def test_quality_and_retain() -> None:
    data = runs.head(b"", has_properties=True) + runs.packet(0x3D, b"a/b", b"\x01\x01", b"hi")
    (found,) = runs.opened(data)
    assert (found.qos, found.retain, found.properties, found.payload) == (
        2,
        True,
        b"\x01\x01",
        b"hi",
    )


@given(packets=st.lists(PACKET, max_size=5), client=st.binary(max_size=30), new=st.booleans())
def test_what_is_written_is_read(
    packets: list[tuple[int, bytes, bytes]], client: bytes, new: bool
) -> None:
    pieces = [
        runs.packet(first, topic, b"" if new else None, body) for first, topic, body in packets
    ]
    run = runs.opened(runs.head(client, has_properties=new) + b"".join(pieces))
    assert run.client_id == client
    assert [(one.first, one.topic, one.payload) for one in run] == packets


def test_places() -> None:
    head = runs.head(b"", has_properties=False, places=[1, 7])
    assert [one.place for one in runs.opened(head + FIRST + FIRST)] == [1, 7]
    for count in (1, 3):
        with pytest.raises(Corrupted, match="places"):
            list(runs.opened(head + FIRST * count))


@given(garbage=st.binary(max_size=60), cut=st.integers(0, 40))
def test_damage_is_corrupted(garbage: bytes, cut: int) -> None:
    whole = runs.head(b"id", has_properties=True, places=[0, 1]) + FIRST + SECOND
    for data in (garbage, whole[:cut], whole[:cut] + garbage):
        with contextlib.suppress(Corrupted):
            list(runs.opened(data))


@pytest.mark.parametrize("number", [0, 127, 128, 16_383, 16_384, 2_097_152, 268_435_455])
def test_lengths(number: int) -> None:
    written = runs.length(number)
    assert runs.length_at(written, 0, len(written)) == (number, len(written))
    with pytest.raises(Corrupted):
        runs.length_at(written[:-1] + b"\x80", 0, len(written))
