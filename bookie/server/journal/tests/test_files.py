"""Journal files: fresh ones, spares, zeros behind the last group."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.server.journal import files, inventory
from magnetar.bookie.server.journal.files import PIECES_MAX
from magnetar.bookie.tests.real_disk import directory_at, journal_files_at

MIB = 1024 * 1024


def make(directory, spares_max=1, size_max=MIB):
    return journal_files_at(directory, size_max=size_max, spares_max=spares_max)


def page(fill=b"r"):
    data = aligned(4096)
    data[:] = fill * 4096
    return data


def test_a_fresh_journal_is_a_header_and_zeros(tmp_path):
    made = make(tmp_path).create(0xABC, synced=True)
    made.write(page())
    made.sync()
    made.close()
    data = (tmp_path / "abc.txn").read_bytes()
    assert data[:512] == journal_format.HEADER
    assert data[512:4608] == b"r" * 4096
    assert data.count(0, 4608) == len(data) - 4608
    assert files.journals(directory_at(tmp_path)) == [0xABC]


def test_an_old_journal_comes_back_with_nothing_of_what_it_held(tmp_path):
    journals = make(tmp_path)
    old = journals.create(1, MIB - 2048, synced=True)
    while old.room >= 4096:
        old.write(page(b"S"))
    old.close()
    journals.retire([1])
    assert not (tmp_path / "1.txn").exists()
    assert (tmp_path / "spare.0").exists()
    # A restart finds the spare; the next journal is that file.
    new = make(tmp_path).create(2, synced=True)
    new.write(page(b"n"))
    new.close()
    data = (tmp_path / "2.txn").read_bytes()
    assert len(data) == MIB
    assert data[:512] == journal_format.HEADER
    assert b"S" not in data
    assert data.count(0, 4608) == len(data) - 4608


def test_unfinished_files_and_too_many_spares_are_dropped(tmp_path):
    for name in ("spare.dirty", "spare.fresh", "spare.0", "spare.1"):
        (tmp_path / name).write_bytes(bytes(MIB))
    make(tmp_path, spares_max=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spare.0"]
    make(tmp_path, spares_max=1, size_max=2 * MIB)
    assert not list(tmp_path.iterdir())


def test_no_spares_wanted(tmp_path):
    journals = make(tmp_path, spares_max=0)
    journals.create(1, synced=True).close()
    journals.retire([1])
    assert [path.name for path in tmp_path.iterdir()] == [inventory.FILE]


def test_an_id_is_never_used_twice(tmp_path):
    journals = make(tmp_path)
    journals.create(5, synced=True).close()
    with pytest.raises(AssertionError):
        journals.create(5, synced=True)


@pytest.mark.parametrize("synced", [True, False])
def test_files_grow_and_are_zeros_to_their_end(tmp_path, synced):
    journals = make(tmp_path, size_max=4 * MIB)
    sizes = []
    for journal_id in range(1, 5):
        made = journals.create(journal_id, synced=synced)
        room = made.room
        for _ in range(3):
            made.write(page())
        made.close()
        data = (tmp_path / f"{journal_id}.txn").read_bytes()
        assert data[512 : 512 + 3 * 4096] == b"r" * 3 * 4096
        assert data.count(0, 512 + 3 * 4096) == len(data) - 512 - 3 * 4096
        assert len(data) - 2048 <= room < len(data)
        sizes.append(len(data))
    assert sizes == [MIB // 4, 2 * MIB, 4 * MIB, 4 * MIB]


def test_a_group_larger_than_any_file_gets_one_of_its_own(tmp_path):
    journals = make(tmp_path)
    made = journals.create(1, 3 * MIB, synced=True)
    assert made.room >= 3 * MIB
    made.close()
    journals.retire([1])  # too large to be a spare
    assert [path.name for path in tmp_path.iterdir()] == [inventory.FILE]


def test_one_thread_makes_journals_while_another_retires_them(tmp_path):
    """They once met under the name of a file in the making, and under the number of a spare."""
    made = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=2)
    old: SimpleQueue[int | None] = SimpleQueue()

    def retire() -> None:
        while (journal_id := old.get()) is not None:
            made.retire([journal_id])

    with ThreadPoolExecutor(1) as pool:
        retiring = pool.submit(retire)
        for journal_id in range(60):
            made.create(journal_id, synced=False).close()
            old.put(journal_id)
        old.put(None)
        retiring.result()
    assert not files.journals(directory_at(tmp_path))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left.pop(0) == inventory.FILE
    assert left == [f"{files.SPARE}{i}" for i in range(len(left))]
    assert len(left) <= 2


def test_other_files_are_no_journals(tmp_path):
    for name in ("copy.txn", "-1.txn", "1.txn.old", "1f.txn"):
        (tmp_path / name).write_bytes(b"")
    assert files.journals(directory_at(tmp_path)) == [0x1F]


def test_a_journal_that_finds_no_room_leaves_the_room_to_others(tmp_path, monkeypatch):
    """Half of it would fill what is left of the disk until the next start."""
    write = files._write_zeroed

    def full(file, size):
        write(file, 4096)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_write_zeroed", full)
    journals = make(tmp_path)
    with pytest.raises(OSError, match="No space"):
        journals.create(1, synced=True)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(files, "_write_zeroed", write)
    journals.create(1, synced=True).close()


@pytest.mark.parametrize("spares_max", [0, 1])
def test_a_journal_that_cannot_be_listed_can_be_made_again(tmp_path, monkeypatch, spares_max):
    """A spare takes no room of a full disk, but the inventory that is to name it does."""
    journals = make(tmp_path, spares_max)
    first = journals.create(1, MIB - 2048, synced=True)
    first.close()
    journals.retire([1])
    write = inventory.write

    def full(directory, sizes):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(inventory, "write", full)
    with pytest.raises(OSError, match="No space"):
        journals.create(2, synced=True)
    assert files.journals(directory_at(tmp_path)) == []
    assert (tmp_path / "spare.0").exists() == bool(spares_max)
    monkeypatch.setattr(inventory, "write", write)
    journals.create(2, synced=True).close()
    assert list(inventory.decode((tmp_path / inventory.FILE).read_bytes())) == [2]


@pytest.mark.parametrize("taken", [1, 100, 1 << 20])
def test_pieces_are_written_whole_however_much_the_system_takes(tmp_path, monkeypatch, taken):
    journals = make(tmp_path, spares_max=0)
    pwritev = os.pwritev

    def some(fd, pieces, position):
        return pwritev(fd, [b"".join(pieces)[:taken]], position)

    monkeypatch.setattr(os, "pwritev", some)
    file = journals.create(1, synced=False)
    pieces = [b"%04d" % place for place in range(PIECES_MAX + 128)]
    begin = file.position
    file.write_pieces(pieces)
    file.close()
    written = b"".join(pieces)
    assert file.position == begin + len(written)
    assert (tmp_path / "1.txn").read_bytes()[begin : file.position] == written
