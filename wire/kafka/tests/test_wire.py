"""Frames in, responses out in order; whatever else comes ends the connection."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.messages.basics import ApiVersionsResponse
from magnetar.wire.kafka.messages.groups import HeartbeatResponse
from magnetar.wire.kafka.wire import FRAME_BYTES_MAX, WORDS_BYTES_MAX, KafkaWire

API_VERSIONS, HEARTBEAT = 18, 12


def frame(key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    inside = struct.pack(">hhih", key, version, correlation_id, -1) + body
    return struct.pack(">i", len(inside)) + inside


def heartbeat(correlation_id: int) -> bytes:
    return frame(HEARTBEAT, 0, correlation_id, b"\0\x01g\0\0\0\x05\0\x01m")


def correlations(pieces: list[bytes]) -> list[int]:
    """Of the responses in what is sent."""
    data, at, found = b"".join(pieces), 0, []
    while at < len(data):
        size, correlation_id = struct.unpack_from(">ii", data, at)
        found.append(correlation_id)
        at += 4 + size
    return found


STREAM = b"".join([frame(API_VERSIONS, 0, 1), heartbeat(2), heartbeat(3), heartbeat(4)])


@given(st.lists(st.integers(0, len(STREAM)), max_size=5))
def test_any_split_of_the_bytes_is_the_same(cuts: list[int]) -> None:
    wire, left, requested = KafkaWire(), b"", []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, stop in itertools.pairwise(edges):
        left += STREAM[start:stop]
        left = left[wire.feed(left) :]
        requested += [one.correlation_id for one in wire.take_events()]
    assert (requested, left) == ([1, 2, 3, 4], b"")


@given(st.permutations([0, 1, 2, 3]))
def test_responses_leave_in_the_order_of_the_requests(order: list[int]) -> None:
    wire, sent = KafkaWire(), []
    wire.feed(STREAM)
    requested = wire.take_events()
    assert wire.waiting == 4
    for place in order:
        if place == 0:
            wire.answer(requested[0], ApiVersionsResponse(error_code=0, api_keys=[]))
        elif place == 2:
            wire.answer(requested[2], None)  # as a Produce that wants no answer
        else:
            wire.answer(requested[place], HeartbeatResponse(error_code=0))
        sent += correlations(wire.take_outgoing())
    assert sent == [1, 2, 4]
    assert wire.waiting == 0


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">i", -1),
        struct.pack(">i", FRAME_BYTES_MAX + 1),
        struct.pack(">ih", WORDS_BYTES_MAX + 1, HEARTBEAT),
        frame(4711, 0, 1),
        frame(HEARTBEAT, 99, 1),
        frame(HEARTBEAT, 0, 1, b"\0\x01"),
        struct.pack(">i", 3) + b"\0\0\0",
    ],
)
def test_what_makes_no_sense_ends_it(bad: bytes) -> None:
    wire = KafkaWire()
    with pytest.raises(WireError):
        wire.feed(heartbeat(1) + bad)
    assert [one.correlation_id for one in wire.take_events()] == [1]
    with pytest.raises(WireError, match="after the end"):
        wire.feed(heartbeat(2))


def test_a_large_request_with_records_is_waited_for() -> None:
    wire = KafkaWire()
    size = struct.pack(">i", FRAME_BYTES_MAX)
    for come in (size, size + b"\0", size + b"\0\0"):
        assert wire.feed(come) == 0
        assert wire.frame_bytes_wanted == FRAME_BYTES_MAX + 4


def test_an_unknown_version_of_the_first_question_is_answered() -> None:
    wire = KafkaWire()
    wire.feed(frame(API_VERSIONS, 99, 7, b"\0\xff\xff"))
    (requested,) = wire.take_events()
    assert requested.request is None
    wire.answer(requested, ApiVersionsResponse(error_code=35, api_keys=[]))
    assert b"".join(wire.take_outgoing()) == struct.pack(">iihi", 10, 7, 35, 0)
