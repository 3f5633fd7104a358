"""Frames that Apache's client and bookie (4.9.2) sent, and bytes that nobody should send."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.proto import requests_pb2 as pb
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    Add,
    Added,
    Authenticate,
    BatchRead,
    BookieInfo,
    BookieMessage,
    EntryList,
    Forced,
    ForceLedger,
    GetBookieInfo,
    Lac,
    ListEntries,
    Read,
    ReadEntry,
    ReadLac,
    StartTls,
    Status,
    StatusOnly,
    TlsStarted,
    Unanswerable,
    WriteLac,
    WroteLac,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.core.kernel.errors import WireError

KEY = bytes.fromhex("850bf1071c5e3d8c24235676f8816ae0cbe2f14f")

REQUESTS = {
    "fencing read of the LAC": (
        "0a0608031001 1802 a20626 080a 10ffffffffffffffffff01 1a14" + KEY.hex() + "a00601",
        2,
        Read(10, LAST_ENTRY, KEY, fence=True),
    ),
    "recovery read": (
        "0a08080310011804 2064 a20604 080a 1003",
        4,
        Read(10, 3, high_priority=True),
    ),
}
RESPONSES = {
    "add": (
        "0a06080310021800 1000 aa0606 0800 1000 1800",
        Header(pb.ADD_ENTRY, 0),
        Added(Status.OK, 0, 0),
    ),
    "recovery read": (
        "0a06080310011805 109303 a20607 089303 100a 1804",
        Header(pb.READ_ENTRY, 5),
        ReadEntry(Status.NO_ENTRY, 10, 4),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_of_the_stock_client(name: str) -> None:
    text, txn_id, request = REQUESTS[name]
    frame = bytes.fromhex(text)
    assert version3.parse_request(frame) == (Header(pb.READ_ENTRY, txn_id), request)
    assert version3.pack_request(txn_id, request) == frame


def test_adds_of_the_stock_client() -> None:
    add = Add(0, 0, KEY, bytes(132))
    frame = version3.pack_request(1, add)
    assert frame.startswith(bytes.fromhex("0a0608031002 1801 aa06"))
    recovery = version3.pack_request(1, Add(0, 0, KEY, bytes(132), True, high_priority=True))
    assert recovery.startswith(bytes.fromhex("0a0808031002 1801 2064"))
    assert recovery.endswith(bytes.fromhex("a00601"))
    assert version3.parse_request(frame) == (Header(pb.ADD_ENTRY, 1), add)


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_of_the_stock_bookie(name: str) -> None:
    text, header, response = RESPONSES[name]
    frame = bytes.fromhex(text)
    assert version3.pack_response(header, response) == frame
    assert version3.parse_response(frame) == (header.txn_id, response)


ids = st.integers(-(2**63), 2**63 - 1)
optional_ids = st.none() | ids
flags = st.booleans()
blobs = st.binary(max_size=40)
optional_blobs = st.none() | blobs
statuses = st.sampled_from(Status)
REQUEST = st.one_of(
    st.builds(Add, ids, ids, blobs, blobs, flags, flags, flags),
    st.builds(Read, ids, ids, optional_blobs, st.just(True), flags, optional_ids, optional_ids),
    st.builds(Read, ids, ids, st.none(), st.just(False), flags, optional_ids, optional_ids, flags),
    st.builds(Authenticate, st.text(max_size=10), blobs),
    st.builds(WriteLac, ids, ids, blobs, blobs),
    st.builds(ReadLac, ids),
    st.builds(GetBookieInfo, flags, flags),
    st.builds(StartTls),
    st.builds(ForceLedger, ids),
    st.builds(ListEntries, ids),
)
RESPONSE = st.one_of(
    st.builds(Added, statuses, ids, ids),
    st.builds(ReadEntry, statuses, ids, ids, optional_blobs, optional_ids, optional_ids),
    st.builds(Authenticate, st.text(max_size=10), blobs),
    st.builds(WroteLac, statuses, ids),
    st.builds(Lac, statuses, ids, optional_blobs, optional_blobs),
    st.builds(BookieInfo, statuses, optional_ids, optional_ids),
    st.builds(TlsStarted, statuses),
    st.builds(Forced, statuses, ids),
    st.builds(EntryList, statuses, ids, optional_blobs),
    st.builds(StatusOnly, statuses),
)
txn_ids = st.integers(0, 2**64 - 1)


@given(txn_ids, REQUEST)
def test_requests_come_back(txn_id: int, request: BookieMessage) -> None:
    header, found = version3.parse_request(version3.pack_request(txn_id, request))
    assert (header.txn_id, found) == (txn_id, request)


def test_a_key_is_kept_only_for_a_fence() -> None:
    frame = version3.pack_request(1, Read(1, 0, KEY))
    assert version3.parse_request(frame)[1] == Read(1, 0)


@given(txn_ids, RESPONSE)
def test_responses_come_back(txn_id: int, response: BookieMessage) -> None:
    frame = version3.pack_response(Header(pb.READ_ENTRY, txn_id), response)
    assert version3.parse_response(frame) == (txn_id, response)


@given(st.binary(max_size=80))
def test_any_bytes(frame: bytes) -> None:
    """They are a message, or refused: no other error comes out."""
    for parse in (version3.parse_request, version3.parse_response):
        with suppress(WireError):
            parse(frame)


def test_an_operation_without_a_number_here_is_not_version_3() -> None:
    frame = version3.pack_request(1, ReadLac(5)).replace(b"\x10\x07", b"\x10\x63", 1)
    with pytest.raises(WireError):
        version3.parse_request(frame)


def test_a_frame_of_version_2_is_not_version_3() -> None:
    with pytest.raises(WireError):
        version3.parse_request(bytes.fromhex("02020004 000000000000000b 0000000000000003"))


@pytest.mark.parametrize("operation", pb.OperationType.values())
def test_an_operation_without_its_request(operation: pb.OperationType) -> None:
    made = pb.Request()
    made.header.version, made.header.txnId = pb.VERSION_THREE, 9
    made.header.operation = operation
    header, found = version3.parse_request(made.SerializeToString())
    assert header == (operation, 9)
    if operation != pb.START_TLS:  # which has no fields
        assert found == Unanswerable(Status.BAD_REQUEST)


def test_another_version() -> None:
    made = pb.Request.FromString(version3.pack_request(3, ReadLac(5)))
    made.header.version = pb.VERSION_TWO
    _, found = version3.parse_request(made.SerializeToString())
    assert found == Unanswerable(Status.BAD_VERSION)


def test_what_version_3_does_not_have() -> None:
    with pytest.raises(WireError, match="has no BatchRead"):
        version3.pack_request(1, BatchRead(1, 0, 1, 1, 1))
    with pytest.raises(WireError, match="has no StartTls"):
        version3.pack_response(Header(pb.START_TLS, 1), StartTls())
