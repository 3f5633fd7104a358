"""How appends become a group: pieces, padding, the next file."""

import pytest

from bookie.journal import format
from bookie.journal.files import JournalFiles
from bookie.journal.groups import BUFFER_BYTES, Groups


@pytest.fixture
def groups(tmp_path):
    files = JournalFiles(tmp_path, size_max=64 * 1024, ahead=64 * 1024, spares_max=0)
    made = Groups(files, 1, 64 * 1024, wait_sync=True)
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
    assert len(written) % format.ALIGNMENT_BYTES == 0
    total = sum(sizes)
    assert written[:total] == b"b" * total
    assert written[total:] == format.padding(format.HEADER_BYTES + total)


def test_a_full_file_is_to_be_rolled_and_a_fresh_one_takes_anything(groups):
    assert groups.begin(10 * BUFFER_BYTES)
    for piece in groups.pieces(batch(1000)):
        groups.file.write(piece)
    groups.end()
    first = groups.synced
    assert first > format.Mark(1, format.HEADER_BYTES)
    assert not groups.unsynced
    assert groups.begin(50 * 1024)
    assert not groups.begin(64 * 1024)
    groups.roll()
    assert groups.file.journal_id == 2
    assert groups.synced == format.Mark(2, format.HEADER_BYTES) > first
    assert groups.begin(64 * 1024)
