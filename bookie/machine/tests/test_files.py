"""Files of this system: the flags they are opened with, what a sync says."""

import os

import pytest

from magnetar.bookie.machine import files
from magnetar.bookie.machine.files import (
    AHEAD_BYTES_FAST,
    PIECE_BYTES,
    SystemReadFile,
    SystemWriteFile,
    sync_descriptor,
)
from magnetar.core.ports.disk import Creation, WriteMode


def test_a_sync_of_nothing_fails():
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_descriptor(1_000_000)


def test_what_is_written_is_synced_by_the_descriptor(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "sync_descriptor", synced.append)
    file = SystemWriteFile(str(tmp_path / "file"), Creation.NEW, WriteMode.CACHED)
    file.sync()
    assert synced == [file.fileno()]
    file.close()


def test_a_file_is_not_handed_to_child_processes(tmp_path):
    file = SystemWriteFile(str(tmp_path / "file"), Creation.NEW, WriteMode.CACHED)
    assert not os.get_inheritable(file.fileno())
    file.close()


def test_where_direct_reads_do_not_work_the_page_cache_is_read(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"abc")
    opened = os.open

    def refuse(path, flags, *more):
        if flags & (1 << 30):
            raise OSError(22, "Invalid argument")
        return opened(path, flags, *more)

    monkeypatch.setattr(files, "DIRECT", 1 << 30)
    monkeypatch.setattr(os, "open", refuse)
    file = SystemReadFile(str(tmp_path / "file"), direct=True)
    assert file.pread(3, 0) == b"abc"
    file.close()
    with pytest.raises(FileNotFoundError):
        SystemReadFile(str(tmp_path / "nothing"), direct=True)


@pytest.fixture
def advice(monkeypatch):
    """What the system is told: (offset, bytes, advice)."""
    given = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *hint: given.append(hint), raising=False)
    return given


@pytest.fixture
def large(tmp_path):
    (tmp_path / "file").write_bytes(bytes(4 * AHEAD_BYTES_FAST))
    return str(tmp_path / "file")


@pytest.mark.parametrize("overlap", [0, 100])
def test_reads_in_a_row_are_read_ahead_and_a_bounded_part_at_a_time(large, advice, overlap):
    """The next one may begin in the middle of an entry that the one before had in part."""
    file = SystemReadFile(large, direct=False)
    size = PIECE_BYTES // 4
    for place in range(5):
        assert len(file.pread(size + overlap, place * size)) == size + overlap
    second = 2 * size + overlap
    assert advice[1:] == [(second + at, PIECE_BYTES, files.WILL_NEED) for at in (0, PIECE_BYTES)]
    file.close()


FAST, SLOW = 0.001, 0.02


@pytest.mark.parametrize(
    ("paces", "ahead"),
    [
        ((FAST, FAST), AHEAD_BYTES_FAST),
        ((SLOW, FAST), AHEAD_BYTES_FAST),
        ((FAST, SLOW), PIECE_BYTES),
        ((SLOW, SLOW), PIECE_BYTES),
    ],
)
def test_who_reads_fast_has_more_read_ahead(large, advice, monkeypatch, paces, ahead):
    """Judged again and again, for as long as it reads in a row."""
    now = 100.0
    monkeypatch.setattr(files, "monotonic", lambda: now)
    monkeypatch.setattr(files, "JUDGED_BYTES", AHEAD_BYTES_FAST)
    file = SystemReadFile(large, direct=False)
    for place in range(0, 4 * AHEAD_BYTES_FAST, PIECE_BYTES):
        file.pread(PIECE_BYTES, place)
        now += paces[place // (2 * AHEAD_BYTES_FAST)] / 4  # so many pieces are judged together
    last, _, _ = advice[-1]
    assert ahead / 2 <= last + PIECE_BYTES - 4 * AHEAD_BYTES_FAST <= 1.5 * ahead
    advice.clear()
    for place in range(2):  # elsewhere: everybody begins with one piece
        file.pread(100, place * 100)
    assert advice == [(200, PIECE_BYTES, files.WILL_NEED)]
    file.close()


def test_the_core_is_offered_after_each_part(large, advice, monkeypatch):
    file, size = SystemReadFile(large, direct=False), 4096
    offers: list[int] = []
    monkeypatch.setattr(files, "offer_core", lambda: offers.append(len(advice)))
    already = len(advice)
    file.pread(size, 0)
    file._window = AHEAD_BYTES_FAST
    file.pread(size, size)
    parts = AHEAD_BYTES_FAST // PIECE_BYTES
    assert offers == [already, already, *range(already + 1, already + parts + 1)]
    file.close()


def test_reads_here_and_there_are_not_read_ahead(large, advice):
    file = SystemReadFile(large, direct=False)
    for offset in (0, 2 * AHEAD_BYTES_FAST, 100, 4 * AHEAD_BYTES_FAST, 4 * AHEAD_BYTES_FAST):
        file.pread(100, offset)
    assert advice == [(0, 0, files.RANDOM)]
    file.close()


def test_a_file_system_that_takes_no_hint_is_read_all_the_same(large, monkeypatch):
    def refuse(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    file = SystemReadFile(large, direct=False)
    assert file.pread(3, 0) + file.pread(3, 3) == bytes(6)
    file.close()
