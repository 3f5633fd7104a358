"""One journal, opened to read its records."""

import pytest

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.format.journal import HEADER_BYTES
from magnetar.bookie.format.tests.test_journal_scan import FIRST, group, journal
from magnetar.bookie.server.journal.reader import JournalReader, RottenCorrupted
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.kernel.errors import Corrupted


@pytest.fixture
def opened(tmp_path):
    def opened(data):
        (tmp_path / "1.txn").write_bytes(data)
        return JournalReader(directory_at(tmp_path), "1.txn")

    return opened


def records(reader, offset=HEADER_BYTES):
    with reader:
        return list(reader.records(offset, proving=True))


def test_all_records_from_an_offset_on(opened):
    data = journal(FIRST, FIRST[1:])
    assert len(records(opened(data))) == 5
    with opened(data) as reader:
        assert (
            len(list(reader.records(HEADER_BYTES + len(group(HEADER_BYTES, *FIRST)), proving=True)))
            == 2
        )
        assert reader.read(0, 4) == journal_format.MAGIC
        assert not reader.has_left_over()


def test_what_a_torn_group_has_left(opened):
    data = journal(FIRST)
    with opened(data[: data.rindex(b"other")] + bytes(9) + b"leftover") as reader:
        assert len(list(reader.records(HEADER_BYTES, proving=True))) == 2
        assert reader.has_left_over()


def test_a_file_whose_creation_was_cut_off_has_none(opened):
    assert records(opened(bytes(4096))) == []
    with pytest.raises(RottenCorrupted, match=r"1\.txn is empty, and lastMark says 600"):
        records(opened(bytes(4096)), 600)


@pytest.mark.parametrize(
    ("data", "offset", "kind", "why"),
    [
        (journal(FIRST)[:600], 1000, Corrupted, "cut short: it has 600 bytes, and lastMark"),
        (b"noise" * 200, HEADER_BYTES, Corrupted, "does not begin like a journal"),
        (bytes(1024) + b"x" * 1024, HEADER_BYTES, RottenCorrupted, "damaged before its end"),
    ],
)
def test_damage_is_told_with_the_name_of_the_file(opened, data, offset, kind, why):
    with pytest.raises(Corrupted, match=why) as told:
        records(opened(data), offset)
    assert type(told.value) is kind
    assert "1.txn" in str(told.value)
