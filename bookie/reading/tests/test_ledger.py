"""A ledger's metadata, as readers need them."""

import pytest

from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.tests.bookies import LEDGER, metadata
from magnetar.core.kernel.errors import Corrupted


def test_segments_and_their_bookies() -> None:
    ledger = ReadableLedger(LEDGER, metadata(30, {0: "abc", 10: "abd", 20: "ebd"}, (2, 2)))
    assert [ledger.bookies(i) for i in (0, 9, 10, 29)] == [
        ("a", "b"), ("a", "b"), ("b", "d"), ("d", "e"),
    ]  # fmt: skip
    assert [ledger.segment_end(i) for i in (0, 9, 10, 20, 29)] == [9, 9, 19, None, None]
    assert (ledger.ensemble(15), ledger.last_ensemble) == (("a", "b", "d"), ("e", "b", "d"))
    assert (ledger.confirmed_at_least, ledger.last_entry_id, ledger.closed) == (19, 29, True)
    assert not ledger.is_everywhere
    assert ReadableLedger(LEDGER, metadata(1)).is_everywhere


def test_bytes_do_as_well() -> None:
    made = metadata(30)
    ledger = ReadableLedger(LEDGER, ledger_metadata.encode(made, 2))
    assert ledger.metadata == made


def test_the_size_of_an_entry_is_known_when_the_ledger_is_closed() -> None:
    made = metadata(30)
    assert ReadableLedger(LEDGER, made).entry_bytes == made.length // 30 + 1
    assert ReadableLedger(LEDGER, metadata(30, closed=False)).entry_bytes == 1024
    assert ReadableLedger(LEDGER, metadata(0)).entry_bytes == 1024


def test_an_ack_quorum_that_is_not_said_is_the_write_quorum() -> None:
    made = metadata(1, quorums=(2, 1))
    made.ClearField("ackQuorumSize")
    assert ReadableLedger(LEDGER, made).striping == (3, 2, 2)


@pytest.mark.parametrize(
    "segments", [{0: "ab"}, {1: "abc"}, {0: "abc", 5: "ab"}, {0: "abc", 9: "abd", 7: "abe"}]
)
def test_ensembles_that_make_no_sense(segments: dict[int, str]) -> None:
    made = metadata(10)
    del made.segment[:]
    for first, bookies in segments.items():
        made.segment.add(ensembleMember=tuple(bookies), firstEntryId=first)
    with pytest.raises(Corrupted, match="ensembles in the metadata of ledger 5"):
        ReadableLedger(LEDGER, made)


def test_quorums_that_make_no_sense() -> None:
    with pytest.raises(Corrupted, match="metadata of ledger 5"):
        ReadableLedger(LEDGER, metadata(10, quorums=(2, 3)))
