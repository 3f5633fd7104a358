"""One connection: which version a frame is in, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.proto import requests_pb2 as pb
from magnetar.bookie.rpc import version2, version3
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.messages import (
    Added,
    BatchRead,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
    StatusOnly,
    Unanswerable,
)
from magnetar.bookie.rpc.tests.test_adds import add
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import FRAME_BYTES_MAX, BookieWire, Call
from magnetar.core.kernel.errors import WireError


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


READ_2 = framed(version2.pack_request(Read(1, 2)))
READ_3 = framed(version3.pack_request(9, Read(1, 2)))
ADD_2 = framed(version2.pack_request(add(1, 2)))
ADD_3 = framed(version3.pack_request(8, add(1, 2)))
CALL_2 = Call(version2.header(version2.READ), Read(1, 2))
CALL_3 = Call(Header(pb.READ_ENTRY, 9), Read(1, 2))


def heard(wire: BookieWire, data: bytes) -> list[Call | Adds]:
    assert wire.feed(data) == len(data)
    return list(wire.take_events())


def test_version_3_and_then_2() -> None:
    wire = BookieWire()
    assert heard(wire, READ_3 + ADD_3) == [CALL_3, Call(Header(pb.ADD_ENTRY, 8), add(1, 2))]
    assert heard(wire, READ_2 + READ_2) == [CALL_2, CALL_2]


@pytest.mark.parametrize("first", [READ_2, ADD_2])
def test_no_version_3_after_2(first: bytes) -> None:
    wire = BookieWire()
    wire.feed(first)
    with pytest.raises(WireError, match="opcode"):
        wire.feed(READ_3)


def test_the_first_add_of_version_2_is_a_row_as_well() -> None:
    wire = BookieWire()
    first, others = heard(wire, ADD_2 + framed(version2.pack_request(add(1, 3))))
    assert isinstance(first, Adds)
    assert isinstance(others, Adds)
    assert [first.run.first, others.run.first] == [2, 3]
    (row,) = heard(wire, b"".join(framed(version2.pack_request(add(1, n))) for n in (4, 5, 6)))
    assert (row.run.first, row.run.count) == (4, 3)


@given(st.integers(1, 40))
def test_in_pieces(size: int) -> None:
    wire = BookieWire()
    data = READ_3 + READ_2 + ADD_2 + READ_2
    events, rest = [], b""
    for at in range(0, len(data), size):
        rest += data[at : at + size]
        rest = rest[wire.feed(rest) :]
        events += wire.take_events()
        if len(rest) >= 4:
            assert wire.frame_bytes_wanted == 4 + int.from_bytes(rest[:4], "big")
    assert rest == b""
    assert [type(event) for event in events] == [Call, Call, Adds, Call]


def test_an_operation_that_is_newer_makes_the_connection_version_2() -> None:
    """As with Apache's bookies, which then find no such opcode."""
    newer = version3.pack_request(1, ReadLac(5)).replace(b"\x10\x07", b"\x10\x63", 1)
    with pytest.raises(WireError, match="opcode"):
        BookieWire().feed(framed(newer))


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, 0xFFFFFFFF])
def test_a_frame_that_is_too_long(size: int) -> None:
    wire = BookieWire()
    with pytest.raises(WireError, match=f"a frame of {size} bytes"):
        wire.feed(READ_3 + size.to_bytes(4, "big"))
    assert list(wire.take_events()) == [CALL_3]
    with pytest.raises(WireError, match="after the end"):
        wire.feed(READ_3)


def test_a_frame_of_the_largest_size_is_waited_for() -> None:
    wire = BookieWire()
    assert wire.feed(FRAME_BYTES_MAX.to_bytes(4, "big")) == 0
    assert wire.frame_bytes_wanted == FRAME_BYTES_MAX + 4


@pytest.mark.parametrize("body", [b"", b"\2", b"\2\1\0\0", READ_2[4:-1]])
def test_frames_that_are_cut(body: bytes) -> None:
    with pytest.raises(WireError, match="too short"):
        BookieWire().feed(framed(body))


def test_responses_are_in_the_version_of_their_requests() -> None:
    wire = BookieWire()
    first, second, row = heard(wire, READ_3 + READ_2 + ADD_2)
    wire.reply_adds(row, Status.OK)
    answer = ReadEntry(Status.NO_ENTRY, 1, 2)
    wire.reply(second, answer)
    wire.reply(first, answer)
    frames = b"".join(wire.take_outgoing())
    assert frames == b"".join(
        (
            framed(version2.pack_response(version2.header(version2.ADD), Added(Status.OK, 1, 2))),
            framed(version2.pack_response(version2.header(version2.READ), answer)),
            framed(version3.pack_response(Header(pb.READ_ENTRY, 9), answer)),
        )
    )
    assert wire.take_outgoing() == []


def test_entries_of_a_batch_are_not_copied() -> None:
    head = version2.header(version2.BATCH_READ)
    call = Call(head, BatchRead(1, 2, 5, 10, 10_000))
    entry = bytes(1000)
    answer = ReadEntries(Status.OK, 1, 2, 5, (), [b"\0\0\3\xe8", entry])
    wire = BookieWire()
    wire.reply(call, answer)
    pieces = wire.take_outgoing()
    assert any(piece is entry for piece in pieces)
    assert b"".join(pieces) == framed(version2.pack_response(head, answer))


def test_a_request_without_a_meaning() -> None:
    made = pb.Request()
    made.header.version, made.header.txnId = pb.VERSION_THREE, 9
    made.header.operation = pb.RANGE_READ_ENTRY
    wire = BookieWire()
    (call,) = heard(wire, framed(made.SerializeToString()))
    assert call.request == Unanswerable(Status.BAD_REQUEST)
    wire.reply(call, StatusOnly(Status.BAD_REQUEST))
    (_, body) = wire.take_outgoing()
    assert version3.parse_response(body) == (9, StatusOnly(Status.BAD_REQUEST))


def test_nothing_is_packed_after_the_end() -> None:
    wire = BookieWire()
    call, row = heard(wire, READ_2 + ADD_2)
    wire.close()
    wire.reply(call, ReadEntry(Status.NO_ENTRY, 1, 2))
    wire.reply_adds(row, Status.OK)
    assert wire.take_outgoing() == []


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_frames(bodies: list[bytes]) -> None:
    """They are events, or end the connection with a reason."""
    wire = BookieWire()
    data = b"".join(map(framed, bodies))
    try:
        assert wire.feed(data) == len(data)
    except WireError as error:
        reason = str(error)
    else:
        reason = ""
    assert len(wire.take_events()) <= len(bodies)
    assert reason or wire.frame_bytes_wanted == 0
