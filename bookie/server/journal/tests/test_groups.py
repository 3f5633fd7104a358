"""How appends become a group: pieces, padding, the next file."""

import pytest

from magnetar.bookie.format import journal as journal_format
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.server.journal import files, inventory
from magnetar.bookie.server.journal.groups import BUFFER_BYTES, CommitGroups
from magnetar.bookie.tests.real_disk import journal_files_at


@pytest.fixture
def groups(tmp_path):
    journals = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=0)
    made = CommitGroups(journals, 1, system_machine(), wait_sync=True)
    yield made
    made.close()


def batch(*sizes):
    return [([(b"b" * size, None) for size in sizes], sum(sizes))]


@pytest.mark.parametrize(
    "sizes",
    [
        (1,),
        (504,),
        (BUFFER_BYTES - 8,),
        (BUFFER_BYTES - 7,),
        (BUFFER_BYTES,),
        (100, BUFFER_BYTES, 100),
        (3 * BUFFER_BYTES + 5, 1),
    ],
)
def test_pieces_are_aligned_and_the_last_is_padded(groups, sizes):
    groups.begin(sum(sizes))
    written = b"".join(bytes(piece) for piece in groups.pieces(batch(*sizes)))
    assert len(written) % journal_format.ALIGNMENT_BYTES == 0
    total = sum(sizes)
    assert written[:total] == b"b" * total
    assert written[total:] == journal_format.padding(journal_format.HEADER_BYTES + total)


@pytest.mark.parametrize(
    "sizes",
    [(1,), (490,), (500,), (20 * 1024,), (BUFFER_BYTES - 16,), (BUFFER_BYTES,),
     (5, BUFFER_BYTES, 5), (3 * BUFFER_BYTES + 5, 1)],
)  # fmt: skip
def test_a_seal_covers_all_pieces(tmp_path, sizes):
    journals = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=0)
    groups = CommitGroups(journals, 1, system_machine(), wait_sync=True, seals=True)
    groups.begin(sum(sizes))
    written = b"".join(bytes(piece) for piece in groups.pieces(batch(*sizes)))
    assert len(written) % journal_format.ALIGNMENT_BYTES == 0
    total = sum(sizes)
    assert written[:total] == b"b" * total
    assert journal_format.is_sealed(written, total)
    assert not journal_format.is_sealed(b"c" + written[1:], total)
    groups.close()


def write(groups, size):
    for piece in groups.pieces(batch(size)):
        groups.file.write(piece)
    groups.end()


def test_a_file_without_room_is_rolled(groups):
    assert groups.begin(1000)
    write(groups, 1000)
    first = groups.synced
    assert first > journal_format.Mark(1, journal_format.HEADER_BYTES)
    assert not groups.unsynced
    assert groups.begin(50 * 1024)
    assert not groups.begin(64 * 1024)
    groups.roll(64 * 1024)
    assert groups.file.journal_id == 2
    assert groups.synced == journal_format.Mark(2, journal_format.HEADER_BYTES) > first
    assert groups.begin(64 * 1024)


def test_the_next_file_is_made_when_one_is_half_full(groups, tmp_path):
    groups.begin(40 * 1024)
    assert not groups.can_roll(1)
    write(groups, 40 * 1024)
    groups._next._making.join()
    assert groups.can_roll(1)
    assert not groups.can_roll(64 * 1024)
    assert (tmp_path / "2.txn").exists()
    groups.roll(64 * 1024)  # it is too small for this one, so another takes its place
    assert groups.file.journal_id == 2
    assert groups.begin(64 * 1024)


def test_a_next_file_that_is_not_needed_leaves_nothing(tmp_path):
    journals = journal_files_at(tmp_path, size_max=64 * 1024, spares_max=0)
    groups = CommitGroups(journals, 1, system_machine(), wait_sync=True)
    groups.begin(40 * 1024)
    write(groups, 40 * 1024)
    groups.close()
    assert [path.name for path in tmp_path.glob("*.txn")] == ["1.txn"]
    assert inventory.decode((tmp_path / inventory.FILE).read_bytes()) == {1: 64 * 1024}


def test_a_failure_to_make_the_next_file_is_met_when_it_is_taken(groups, monkeypatch):
    def fail(file, size):
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_write_zeroed", fail)
        groups.begin(40 * 1024)
        write(groups, 40 * 1024)
        groups._next._making.join()
        assert not groups.can_roll(1)
        with pytest.raises(OSError, match="no"):
            groups.roll(64 * 1024)
    groups.roll(64 * 1024)
    assert groups.file.journal_id == 2
