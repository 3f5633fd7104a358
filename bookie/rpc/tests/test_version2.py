"""Frames that Apache's client and bookie (4.9.2) sent, and bytes that nobody should send."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    Add,
    Added,
    Authenticate,
    BatchRead,
    BookieMessage,
    ForceLedger,
    Read,
    ReadEntries,
    ReadEntry,
    Status,
    StatusOnly,
    Unanswerable,
)
from magnetar.core.kernel.errors import WireError

KEY = bytes.fromhex("850bf1071c5e3d8c24235676f8816ae0cbe2f14f")
ENTRY = bytes.fromhex(
    "000000000000000b 0000000000000003 0000000000000002 0000000000000008 e2ad1433 6533"
)
FIRST = bytes.fromhex(
    "0000000000000001 0000000000000000 ffffffffffffffff 0000000000000064 2a194824"
) + bytes(100)

REQUESTS = {
    "add": ("02010000" + KEY.hex() + FIRST.hex(), Add(1, 0, KEY, FIRST)),
    "fencing read of the LAC": (
        "02020001 000000000000000b ffffffffffffffff" + KEY.hex(),
        Read(11, LAST_ENTRY, KEY, fence=True),
    ),
    "recovery read, before 4.14": (
        "02020004 000000000000000b 0000000000000003",
        Read(11, 3, high_priority=True),
    ),
    "recovery read": (
        "02020005 000000000000000b 0000000000000003" + KEY.hex(),
        Read(11, 3, KEY, fence=True, high_priority=True),
    ),
    "recovery add": (
        "02010006" + KEY.hex() + ENTRY.hex(),
        Add(11, 3, KEY, ENTRY, recovery=True, high_priority=True),
    ),
}
RESPONSES = {
    "add": ("02010000 00000000 0000000000000001 0000000000000000", Added(Status.OK, 1, 0)),
    "fencing read of the LAC": (
        "02020000 00000000 000000000000000b ffffffffffffffff" + ENTRY.hex(),
        ReadEntry(Status.OK, 11, LAST_ENTRY, ENTRY),
    ),
    "recovery read": (
        "02020000 00000002 000000000000000b 0000000000000004",
        ReadEntry(Status.NO_ENTRY, 11, 4),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_of_the_stock_client(name: str) -> None:
    text, request = REQUESTS[name]
    frame = bytes.fromhex(text)
    assert version2.parse_request(frame)[1] == request
    assert version2.pack_request(request) == frame


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_of_the_stock_bookie(name: str) -> None:
    text, response = RESPONSES[name]
    frame = bytes.fromhex(text)
    head, _ = version2.parse_request(bytes.fromhex(REQUESTS[name][0]))
    assert version2.pack_response(head, response) == frame
    assert version2.parse_response(frame) == response


ids = st.integers(-(2**63), 2**63 - 1)
keys = st.binary(min_size=20, max_size=20)
statuses = st.sampled_from(Status)
blobs = st.binary(max_size=40)


@st.composite
def adds(draw: st.DrawFn) -> Add:
    ledger_id, entry_id = draw(ids), draw(ids)
    begin = ledger_id.to_bytes(8, "big", signed=True) + entry_id.to_bytes(8, "big", signed=True)
    entry = begin + bytes(16) + draw(blobs)
    return Add(ledger_id, entry_id, draw(keys), entry, draw(st.booleans()), draw(st.booleans()))


@st.composite
def batch_reads(draw: st.DrawFn) -> BatchRead:
    fence = draw(st.booleans())
    numbers = [draw(ids), draw(ids), draw(ids), draw(st.integers(-(2**31), 2**31 - 1)), draw(ids)]
    return BatchRead(*numbers, draw(keys) if fence else None, fence)


REQUEST = st.one_of(
    adds(),
    batch_reads(),
    st.builds(Read, ids, ids, keys, st.just(True), st.booleans()),
    st.builds(Read, ids, ids, st.none(), st.just(False), st.booleans()),
    st.builds(Authenticate, st.text(max_size=10), blobs),
)
RESPONSE = st.one_of(
    st.builds(Added, statuses, ids, ids),
    st.builds(ReadEntry, st.just(Status.OK), ids, ids, blobs),
    st.builds(ReadEntry, statuses.filter(lambda one: one is not Status.OK), ids, ids),
    st.builds(ReadEntries, statuses, ids, ids, ids, st.lists(blobs).map(tuple)),
    st.builds(Authenticate, st.text(max_size=10), blobs),
)
OPCODES = {Added: 1, ReadEntry: 2, Authenticate: 3, ReadEntries: 7}


@given(REQUEST)
def test_requests_come_back(request: BookieMessage) -> None:
    assert version2.parse_request(version2.pack_request(request))[1] == request


@given(RESPONSE)
def test_responses_come_back(response: BookieMessage) -> None:
    head = version2.header(OPCODES[type(response)], flags=0xFFFF)
    assert version2.parse_response(version2.pack_response(head, response)) == response


@given(REQUEST, st.data())
def test_a_request_cut_short(request: BookieMessage, data: st.DataObject) -> None:
    """It is refused, or is another request: an add has no length of its own."""
    frame = version2.pack_request(request)
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    try:
        _, found = version2.parse_request(cut)
    except WireError:
        return
    assert isinstance(found, Add | Authenticate)
    assert len(cut) >= (56 if isinstance(found, Add) else 4)


@given(st.binary(max_size=80))
def test_any_bytes(frame: bytes) -> None:
    """They are a message, or refused: no other error comes out."""
    for parse in (version2.parse_request, version2.parse_response):
        with suppress(WireError):
            parse(frame)


def test_what_version_2_does_not_have() -> None:
    with pytest.raises(WireError, match="has no ForceLedger"):
        version2.pack_request(ForceLedger(1))
    with pytest.raises(WireError, match="opcode 4"):
        version2.parse_request(bytes.fromhex("02040000 0000000000000001"))
    with pytest.raises(WireError, match="opcode 9"):
        version2.parse_response(bytes.fromhex("02090000 00000000") + bytes(16))


def test_a_fencing_read_of_a_version_without_a_key() -> None:
    frame = bytes.fromhex("01020001 000000000000000b 0000000000000003")
    assert version2.parse_request(frame) == (0x01020001, Read(11, 3, None, fence=True))


@pytest.mark.parametrize("version", [0, 3, 255])
def test_a_version_that_is_not_spoken(version: int) -> None:
    head = version2.header(1, version=version)
    frame = head.to_bytes(4, "big") + KEY + FIRST
    assert version2.parse_request(frame) == (head, Unanswerable(Status.BAD_VERSION))
    answer = version2.pack_response(head, StatusOnly(Status.BAD_VERSION))
    assert answer == head.to_bytes(4, "big") + b"\0\0\0\x67" + b"\xff" * 16


def test_an_error_brings_no_entry() -> None:
    response = ReadEntry(Status.IO_ERROR, 1, 2, b"what was read of it")
    assert len(version2.pack_response(version2.header(2), response)) == 24


def test_an_unknown_error_code_is_an_io_error() -> None:
    frame = bytes.fromhex("02010000 000003e7 0000000000000001 0000000000000000")
    assert version2.parse_response(frame) == Added(Status.IO_ERROR, 1, 0)


def test_a_batch_whose_last_entry_is_cut() -> None:
    response = ReadEntries(Status.OK, 1, 0, 5, (b"one", b"two"))
    frame = version2.pack_response(version2.header(7), response)
    for size in range(len(frame) - 6, len(frame)):
        with pytest.raises(WireError):
            version2.parse_response(frame[:size])
