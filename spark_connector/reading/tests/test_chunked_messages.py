"""Messages in chunks, whatever range, and whatever ledger, has their first ones."""

import pytest

from magnetar.core.entry.forms import form_of
from magnetar.core.testing.entries import entry
from magnetar.spark_connector.planning.ranges import EntryRange, between
from magnetar.spark_connector.reading import chunked_messages
from magnetar.spark_connector.reading.chunked_messages import ChunkedMessages
from magnetar.spark_connector.reading.ledger_entries import LedgerEntries
from magnetar.spark_connector.reading.tests.ledgers import LOG, MemoryDirectory

OTHER = entry(b"another")


def parts(uuid: bytes, count: int = 3) -> list[bytes]:
    return [entry(b"%d" % number, chunk=(uuid, number, count)) for number in range(count)]


A, B = parts(b"a"), parts(b"b")


class Rows:
    """The messages of a range, as chunks."""

    def __init__(self, directory: MemoryDirectory, one: EntryRange) -> None:
        self.lost: list[str] = []

        def opened(wanted: EntryRange, lose: object) -> LedgerEntries:
            return LedgerEntries(directory, wanted, lose, 0.0)

        chunked = ChunkedMessages(one, directory, opened, self.lost.append)
        self.found = []
        with opened(one, self.lost.append) as ledger:
            for first, entries in ledger.runs(one.first, one.last):
                for entry_id, sent in enumerate(entries, first):
                    chunk = form_of(sent).chunk(sent)
                    if chunk is None:
                        continue
                    earlier = chunked.earlier(entry_id, sent, chunk)
                    if earlier is not None:
                        self.found.append([*earlier, sent])


def ranges(directory: MemoryDirectory) -> list[EntryRange]:
    now = directory.now
    return list(between(LOG, now, now.first, now.end))


def cut(directory: MemoryDirectory, ledger: int, first: int) -> EntryRange:
    """A ledger from one of its entries on."""
    from msgspec.structs import replace

    return replace(ranges(directory)[ledger], first=first)


def test_in_one_range() -> None:
    directory = MemoryDirectory([A[0], B[0], OTHER, A[1], B[1], B[2], A[2]])
    assert Rows(directory, ranges(directory)[0]).found == [B, A]
    assert directory.questions == 0


@pytest.mark.parametrize("first", range(1, 7))
def test_they_begin_before_the_range(first) -> None:
    directory = MemoryDirectory([A[0], OTHER, B[0], A[1], B[1], A[2], B[2]])
    expected = [A, B] if first <= 5 else [B]
    assert Rows(directory, cut(directory, 0, first)).found == expected


@pytest.mark.parametrize("first", range(1, 9))
def test_they_begin_before_the_range_of_a_compacted_ledger(first) -> None:
    """Compaction removes what is between chunks; they keep their ids."""
    directory = MemoryDirectory([A[0], OTHER, OTHER, A[1], OTHER, B[0], B[1], A[2], B[2]])
    directory.compact(10, 20, [0, 3, 5, 6, 7, 8])
    rows = Rows(directory, cut(directory, 0, first))
    assert (rows.found, rows.lost) == ([A, B] if first <= 7 else [B], [])


@pytest.mark.parametrize("compacted", [False, True])
def test_they_begin_in_earlier_ledgers(compacted) -> None:
    directory = MemoryDirectory([OTHER, A[0]], [OTHER], [A[1], OTHER], [A[2]])
    if compacted:
        directory.compact(10, 20, [1])
        directory.compact(11, 20, [])
        directory.compact(12, 21, [0])
    last = ranges(directory)[-1]
    rows = Rows(directory, last)
    assert (rows.found, rows.lost) == ([A], [])


def test_those_of_deleted_ledgers_are_missing() -> None:
    directory = MemoryDirectory([A[0]], [A[1], A[2], OTHER])
    del directory.planned[0], directory.stored[10]
    directory.first_index = 1
    rows = Rows(directory, ranges(directory)[0])
    assert rows.found == []
    assert rows.lost == ["chunks of the message that ends in 11:1 are missing"]


@pytest.mark.parametrize("first", range(6))
def test_sent_twice_it_is_one_row(first) -> None:
    """But of a range that has the second one whole, as any message that was sent twice."""
    directory = MemoryDirectory([*A, *A])
    found = Rows(directory, cut(directory, 0, first)).found
    assert found == ([A] if first <= 3 else [])


def test_far_back_in_other_entries() -> None:
    directory = MemoryDirectory([A[0], *[OTHER] * 200, A[1]], [*[OTHER] * 100, A[2]])
    assert Rows(directory, ranges(directory)[1]).found == [A]


@pytest.mark.parametrize("held", [0, 400, 800])
def test_more_at_a_time_than_are_held(held, monkeypatch) -> None:
    """Their chunks are looked for in the range itself; of these no more than one message."""
    monkeypatch.setattr(chunked_messages, "CHUNKS_BYTES_MAX", held)
    directory = MemoryDirectory([A[0], B[0], A[1], OTHER, B[1], A[2], B[2]])
    monkeypatch.setattr(chunked_messages, "FOUND_BYTES_MAX", 1 << 20)
    rows = Rows(directory, ranges(directory)[0])
    assert (rows.found, rows.lost) == ([A, B], [])


def test_one_that_is_too_large(monkeypatch) -> None:
    """Unless its chunks are near to each other."""
    monkeypatch.setattr(chunked_messages, "CHUNKS_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(chunked_messages, "FOUND_BYTES_MAX", 1 << 20)
    large = [entry(bytes(400_000), chunk=(b"a", number, 5)) for number in range(5)]
    directory = MemoryDirectory([*large, *B])
    assert Rows(directory, ranges(directory)[0]).found == [large, B]
    directory = MemoryDirectory([*[each for one in large for each in (one, *[OTHER] * 99)], *B])
    rows = Rows(directory, ranges(directory)[0])
    assert (rows.found, rows.lost) == ([B], ["the message that ends in 10:400 has more than 1 MiB"])


def test_those_that_never_end_are_not_looked_for_for_ever(monkeypatch) -> None:
    monkeypatch.setattr(chunked_messages, "IN_VAIN_ENTRIES", 5_000)
    ends = [parts(b"%d" % number)[2] for number in range(100)]
    directory = MemoryDirectory([OTHER] * 1_000, ends)
    reads = []
    opened = directory.opened
    monkeypatch.setattr(
        directory, "opened", lambda log, ledger: reads.append(ledger) or opened(log, ledger)
    )
    assert len(Rows(directory, ranges(directory)[1]).lost) == 100
    assert reads.count(10) <= 6
