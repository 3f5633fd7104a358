"""Opening what bookies send, with every digest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading import answers
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.tests.bookies import LEDGER, FakeBookie, metadata, payload
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead, Status
from magnetar.core.kernel.errors import Corrupted, WireError

KINDS = [
    LedgerMetadata.CRC32C, LedgerMetadata.CRC32, LedgerMetadata.HMAC, LedgerMetadata.DUMMY,
]  # fmt: skip
WITH_DIGEST = KINDS[:3]


def _bookie(kind: int, count: int = 20) -> FakeBookie:
    return FakeBookie(ReadableLedger(LEDGER, metadata(count, kind=kind), b"secret"), count)


def _records(*found: bytes) -> bytes:
    return b"".join(len(entry).to_bytes(4, "big") + entry for entry in found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_opened(kind: int) -> None:
    bookie = _bookie(kind)
    frame = bookie.answer(version2.pack_request(BatchRead(LEDGER, 3, 77, 5, 1 << 20)))
    status, request_id, data = answers.batch_in(frame)
    assert (status, request_id) == (Status.OK, 77)
    expected = [payload(i) for i in range(3, 8)]
    assert answers.open_records(bookie.ledger, 3, data) == (expected, "")
    assert answers.open_records(bookie.ledger, 3, b"") == ([], "")


@pytest.mark.parametrize("kind", WITH_DIGEST)
@pytest.mark.parametrize("damaged", [0, 2])
def test_what_is_before_damage_is_returned(kind: int, damaged: int) -> None:
    bookie = _bookie(kind)
    bookie.damaged = {damaged}
    data = _records(*map(bookie.entry, range(4)))
    payloads, damage = answers.open_records(bookie.ledger, 0, data)
    assert payloads == [payload(i) for i in range(damaged)]
    assert damage == f"entry 5:{damaged} does not have its digest"


@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_another_place_are_damage(kind: int) -> None:
    bookie = _bookie(kind)
    for places in ([1], [0, 2], [0, 0]):
        data = _records(*map(bookie.entry, places))
        payloads, damage = answers.open_records(bookie.ledger, 0, data)
        assert (len(payloads), bool(damage)) == (len(places) - 1, True)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_cut_short(kind: int) -> None:
    bookie = _bookie(kind)
    data = _records(bookie.entry(0), bookie.entry(1))
    payloads, damage = answers.open_records(bookie.ledger, 0, data[:-1])
    assert (payloads, bool(damage)) == ([payload(0)], True)


@pytest.mark.parametrize("kind", WITH_DIGEST)
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_any_wrong_bit_is_seen(kind: int, place: int, bit: int) -> None:
    bookie = _bookie(kind)
    entry = bytearray(bookie.entry(1))
    entry[place % len(entry)] ^= 1 << bit
    with pytest.raises(Corrupted):
        answers.open_one(bookie.ledger, 1, bytes(entry))


def test_a_response_that_is_too_short() -> None:
    with pytest.raises(WireError):
        answers.batch_in(bytes(31))
