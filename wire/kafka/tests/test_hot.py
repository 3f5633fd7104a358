"""Produce by hand is Produce by the codec."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.kafka import form
from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka import apis, hot
from magnetar.wire.kafka.hot import Shapes
from magnetar.wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from magnetar.wire.kafka.tests.batch import batch
from magnetar.wire.kafka.tests.frame import feed_large, framed
from magnetar.wire.kafka.wire import KafkaWire

names = st.text(min_size=1, max_size=200)
requests = st.builds(
    ProduceRequest,
    transactional_id=st.none() | names,
    acks=st.sampled_from([-1, 0, 1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    topic_data=st.lists(
        st.builds(
            ProduceTopic,
            name=names,
            partition_data=st.lists(
                st.builds(
                    ProducePartition,
                    index=st.integers(0, 2**31 - 1),
                    records=st.none() | st.binary(max_size=300),
                ),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)


def as_it_is(request: Any) -> Any:
    """Bytes for views, so that both compare."""
    for topic in request.topic_data:
        for part in topic.partition_data:
            part.records = None if part.records is None else bytes(part.records)
    return request


tails = st.sampled_from([b"\0\0\0", b"\0\0\0", b"\0\0", b"\0\0\1", b"\0\0\0\0"])


sizes = st.tuples(st.integers(-2, 2), st.sampled_from([0, 0, 1, 2, 5, 6]))


@given(
    st.sampled_from([b"\0\0\0\x08", b"\0\0\0\x09"]),
    st.binary(max_size=3),
    st.binary(max_size=4),
    st.binary(max_size=200),
    sizes,
    tails | st.just(b""),
)
def test_records_are_found_alike(
    head: bytes, before: bytes, words: bytes, records: bytes, sized: tuple[int, int], tail: bytes
) -> None:
    """Whatever is wrong with their size and with what is behind them."""
    off, size_bytes = sized
    size = struct.pack(">i", len(records) + off)
    if size_bytes:
        number = max(0, len(records) + 1 + off)
        size = b"".join(
            bytes((number >> 7 * place & 127 | 128 * (place < size_bytes - 1),))
            for place in range(size_bytes)
        )
    frame = before + head + b"nmbr" + words + size + records + tail
    for cut in (frame, frame[:-1], frame[: len(before) + 8 + len(words)]):
        for expected in (words, words[:-1], words + b"x"):
            found = hot.py_records_in(cut, len(before), head, expected)
            assert hot.records_in(cut, len(before), head, expected) == found


@given(
    st.lists(st.tuples(requests, st.integers(3, 13), st.binary(max_size=300)), max_size=4),
    st.booleans(),
)
def test_whatever_comes_is_read_as_the_codec_reads_it(
    results: list[tuple[ProduceRequest, int, bytes]], together: bool
) -> None:
    frames, expected = [], []
    for request, version, records in results:
        for again in (None, records):  # the second time with other records
            if again is not None:
                for topic in request.topic_data:
                    for part in topic.partition_data:
                        part.records = again
            frame = framed(request, version, len(frames))
            header = apis.decode_header(frame, 4)
            expected.append((header[:4], apis.decode_request(0, version, frame, header.end)))
            frames.append(frame)
    wire = KafkaWire()
    for data in [b"".join(frames)] if together else frames:
        assert wire.feed(data) == len(data)
    replies = [
        ((one.key, one.version, one.correlation_id, one.client_id), as_it_is(one.request))
        for one in wire.take_events()
    ]
    assert replies == [(header, as_it_is(request)) for header, request in expected]


def one(records: bytes | None, index: int = 3) -> ProduceRequest:
    """Always in the same words, but for the index."""
    part = ProducePartition(index=index, records=records)
    topic = ProduceTopic(name="t", partition_data=[part])
    return ProduceRequest(acks=-1, timeout_ms=5, topic_data=[topic])


def test_the_second_of_a_shape_is_read_by_hand() -> None:
    shapes = Shapes()
    requested = one(b"x" * 200)
    frame = framed(requested, 9, 1)[4:]
    assert shapes.read(frame, 0) is None
    header = apis.decode_header(frame, 0)
    request = apis.decode_request(0, 9, frame, header.end)
    assert isinstance(request, ProduceRequest)
    assert shapes.remember(frame, 0, 9, "me", request) is not None
    found = shapes.read(frame, 0)
    assert found is not None
    assert found[1] == b"x" * 200
    for other in (framed(requested, 10, 1), framed(requested, 9, 1, b"you")):
        assert shapes.read(other[4:], 0) is None
    for damaged in (
        frame[:-1],
        frame + b"\0",
        frame[:-1] + b"\1",
        frame[: len(shapes._known[0].words) + 8],
    ):
        assert shapes.read(damaged, 0) is None


@given(st.sampled_from(hot.VERSIONS), st.integers(1, 300), st.integers(4, 1500))
def test_a_large_request_is_the_same_however_it_comes(version: int, size: int, come: int) -> None:
    """Its records are received by themselves if their beginning has come, else it is whole."""
    wires = KafkaWire(), KafkaWire()
    values = [b"x" * (place % 40) for place in range(size % 60 + 1)]
    for number, records in ((1, batch(b"first")), (2, batch(*values))):
        frame = framed(one(records), version, number)
        words, before = feed_large(wires[0], frame, come)
        come = min(come, len(frame) - 1)
        wires[1].feed(frame)
        (apart,), (whole,) = wires[0].take_events(), wires[1].take_events()
        assert as_it_is(apart.request) == as_it_is(whole.request)
        assert (apart.correlation_id, apart.client_id) == (number, "me")
        assert bool(words) == (number == 2 and come >= frame.index(records) + 61)
        if words:
            front = form.head(len(values), 1_700_000_000_000)
            assert len(front) == before
            assert apart.body.behind(front) == front + records


@pytest.mark.parametrize("size", [-1, 0, 1, 200])
def test_records_that_are_no_batch_are_taken_whole(size: int) -> None:
    wire = KafkaWire()
    wire.feed(framed(one(batch(b"a batch")), 9))
    assert len(wire.shapes._known) == 1
    records = None if size < 0 else b"\xff" * size
    assert feed_large(wire, framed(one(records), 9, 2), 140) == (0, 0)
    assert len(wire.take_events()) == 2


def test_fields_that_we_do_not_know_behind_large_records() -> None:
    wire = KafkaWire()
    records = batch(b"a", b"b")
    plain = framed(one(records), 9, 2)
    wire.feed(plain)
    tagged = plain[:-1] + b"\x01\x63\x00"  # one with the number 99, empty, of the request
    frame = struct.pack(">i", len(tagged) - 4) + tagged[4:]
    assert feed_large(wire, frame, 200) == (0, 0), "it does not end with its records"
    same_size = bytearray(plain)
    same_size[-3] = 1  # a field in the partition, where there is none
    before, _ = wire.take_events()
    with pytest.raises(WireError):
        feed_large(wire, bytes(same_size), 200)
    with pytest.raises(WireError, match="after the end"):
        wire.feed(plain)
    assert wire.take_events() == []
    assert as_it_is(before.request).topic_data[0].partition_data[0].records == records


def test_no_more_shapes_than_may_be() -> None:
    wire = KafkaWire()
    for index in range(3 * hot.SHAPES_MAX):
        wire.feed(framed(one(b"x" * 200, index), 9, index))
    assert len(wire.shapes._known) == hot.SHAPES_MAX


numbers = st.integers(-(2**63), 2**63 - 1)


@given(names, st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1), numbers, numbers)
def test_answers_are_what_the_codec_would_write(
    name: str, topic_id: bytes, index: int, offset: int, start: int
) -> None:
    part = ProducePartition(index=index, records=b"x")
    topic = ProduceTopic(name=name, topic_id=topic_id, partition_data=[part])
    request = ProduceRequest(acks=-1, timeout_ms=5, topic_data=[topic])
    results = ProducedPartition(
        index=index,
        error_code=0,
        base_offset=offset,
        log_start_offset=start,
    )
    answered = ProducedTopic(name=name, topic_id=topic_id, partition_responses=[results])
    for version in hot.VERSIONS:
        shape = Shapes().remember(framed(request, version)[4:], 0, version, "me", request)
        assert shape is not None
        expected = b"".join(
            apis.encode_response(0, version, 77, ProduceResponse(responses=[answered]))
        )
        for answer in (hot.py_answer, hot.answer):
            assert answer(77, shape.answer_words, offset, start, shape.rest) == expected
