import pytest

from magnetar.bookie.client.quorum.ledger_view import LedgerView, put_segment, striping_of
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted


def made(*segments: int) -> LedgerMetadata:
    ledger = ledger_metadata.fresh(("a", "b", "c"), (3, 2), {}, 0, 0)
    for number, first in enumerate(segments):
        put_segment(ledger, first, ("a", "b", f"x{number}"))
    return ledger


def test_the_sizes() -> None:
    ledger = made()
    assert striping_of(ledger) == Striping(3, 3, 2)
    ledger.ClearField("ackQuorumSize")
    assert striping_of(ledger) == Striping(3, 3, 3)
    ledger.quorumSize = 4
    with pytest.raises(Corrupted, match="make no sense"):
        striping_of(ledger)


def test_the_segment_of_an_entry() -> None:
    view = LedgerView(1, made(5, 9), b"")
    abc, second, third = ("a", "b", "c"), ("a", "b", "x0"), ("a", "b", "x1")
    found = [view.segment_of(entry_id) for entry_id in (0, 4, 5, 8, 9, 1000)]
    assert found == [(abc, 4), (abc, 4), (second, 8), (second, 8), (third, None), (third, None)]
    assert view.last_segment == (9, third)


def test_it_follows_the_metadata() -> None:
    view = LedgerView(1, made(5), b"")
    assert not view.follow(made(5))
    assert view.follow(made(5, 7))
    assert view.last_segment[0] == 7


def test_segments_that_make_no_sense() -> None:
    ledger = made(5)
    ledger.segment[0].firstEntryId = 1
    with pytest.raises(Corrupted, match="has segments from"):
        LedgerView(1, ledger, b"")
    ledger = made(5)
    ledger.segment[1].ensembleMember.append("d")
    with pytest.raises(Corrupted, match="of another size"):
        LedgerView(1, ledger, b"")


def test_a_segment_without_entries_is_replaced() -> None:
    ledger = made(5)
    put_segment(ledger, 5, ("d", "e", "f"))
    assert [each.firstEntryId for each in ledger.segment] == [0, 5]
    assert list(ledger.segment[-1].ensembleMember) == ["d", "e", "f"]
    with pytest.raises(Corrupted):
        put_segment(ledger, 4, ("d", "e", "f"))


@pytest.mark.parametrize("kind", ["CRC32", "CRC32C", "HMAC", "DUMMY"])
def test_any_digest_with_the_ledgers_password(kind: str) -> None:
    ledger = made()
    ledger.digestType = LedgerMetadata.DigestType.Value(kind)
    view = LedgerView(7, ledger, b"secret")
    header = DigestHeader(7, 3, 2, 100)
    digest = digests.digest_type(ledger.digestType, b"secret")
    entry = digests.seal_entry(digest, header, b"payload")
    assert view.open_entry(3, entry) == b"payload"
    assert view.open_last(entry) == header
    with pytest.raises(Corrupted):
        view.open_entry(4, entry)
    assert view.has_crc32c is (kind == "CRC32C")
