import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.server.journal import inventory
from magnetar.bookie.tests.real_disk import directory_at, journal_files_at


@given(st.dictionaries(st.integers(0, 2**60), st.integers(0, 2**40)))
def test_what_is_written_is_read(sizes):
    assert inventory.decode(inventory.encode(sizes)) == sizes


def test_every_flip_and_cut_is_noticed():
    data = inventory.encode({0xABC: 4096, 0xABD: 65536})
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1
        for bad in (bytes(flipped), data[:at]):
            with pytest.raises(ValueError):  # noqa: PT011
                inventory.decode(bad)


def test_journals_that_are_gone_or_cut_are_reported(tmp_path, caplog):
    made = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=0)
    for journal_id in (1, 2, 3):
        made.create(journal_id, synced=False).close()
    assert inventory.missing(directory_at(tmp_path), 1) == ""
    made.retire([1])
    assert inventory.missing(directory_at(tmp_path), 1) == ""
    (tmp_path / "3.txn").write_bytes(bytes(100))
    assert "cut short: it has 100 bytes of 65536" in inventory.missing(directory_at(tmp_path), 2)
    (tmp_path / "2.txn").write_bytes(bytes(64 * 1024))
    assert "2.txn has lost its beginning" in inventory.missing(directory_at(tmp_path), 2)
    (tmp_path / "2.txn").unlink()
    assert "is missing" in inventory.missing(directory_at(tmp_path), 2)
    (tmp_path / inventory.FILE).write_bytes(b"noise")
    assert inventory.missing(directory_at(tmp_path), 2) == ""
    assert "taken as they are" in caplog.text
    (tmp_path / inventory.FILE).unlink()
    assert inventory.missing(directory_at(tmp_path), 2) == ""


def test_one_that_is_not_used_is_not_missed(tmp_path):
    made = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=0)
    made.create(1, synced=False).close()
    made.discard(made.create(2, synced=False))
    assert inventory.missing(directory_at(tmp_path), 1) == ""
