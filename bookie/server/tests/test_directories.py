"""The layout below the root, who may use it, and lastMark."""

import pytest

from magnetar.bookie.format.journal import Mark
from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server.directories import LAST_MARK, claim, read_last_mark, write_last_mark
from magnetar.bookie.server.small_files import write_whole
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.testing.memory_disk import MemoryDisk


@pytest.fixture(params=["system", "memory"])
def place(request, tmp_path):
    return (SystemDisk(), str(tmp_path)) if request.param == "system" else (MemoryDisk(), "/data")


def test_the_layout_is_apaches(place):
    disk, path = place
    with claim(disk, path) as directories:
        assert directories.journal.path == f"{path}/journal/current"
        assert directories.ledgers.path == f"{path}/ledgers/current"
        assert set(directories.root.names()) - {"lock"} == {"journal", "ledgers"}


def test_one_process_at_a_time(place):
    disk, path = place
    with claim(disk, path), pytest.raises(StorageFailed, match="in use"), claim(disk, path):
        raise AssertionError
    with claim(disk, path):
        pass


def test_the_mark_is_read_as_it_was_written_or_refused(place):
    with claim(*place) as directories:
        assert read_last_mark(directories) is None
        write_last_mark(directories, Mark(7, 512))
        assert read_last_mark(directories) == Mark(7, 512)
        write_whole(directories.ledgers, LAST_MARK, b"abc")
        with pytest.raises(Corrupted, match="lastMark"):
            read_last_mark(directories)


def test_directories_on_other_disks_are_locked_too(tmp_path):
    disk = SystemDisk()
    journal, ledgers = str(tmp_path / "j"), str(tmp_path / "l")
    with claim(disk, str(tmp_path / "a"), journal, [ledgers]) as directories:
        assert directories.journal.path == f"{journal}/current"
        assert directories.names == (journal, (ledgers,))
        with (
            pytest.raises(StorageFailed, match="j is in use"),
            claim(disk, str(tmp_path / "b"), journal, [str(tmp_path / "m")]),
        ):
            pass
    same = str(tmp_path / "same")
    with claim(disk, str(tmp_path / "c"), same, [same]):
        pass


def test_several_ledger_directories(place):
    disk, path = place
    others = [f"{path}/ledgers", f"{path}-b", f"{path}-c"]
    with claim(disk, path, "", others) as directories:
        assert directories.ledgers.path == f"{path}/ledgers/current"
        found = [each.path for each in directories.all_ledgers]
        assert found == [f"{one}/current" for one in others]
        assert directories.names == ("journal", ("ledgers", f"{path}-b", f"{path}-c"))
        with (
            pytest.raises(StorageFailed, match="-b is in use"),
            claim(disk, f"{path}-other", "", [f"{path}-b"]),
        ):
            pass
    with pytest.raises(StorageFailed, match="named twice"), claim(disk, path, "", ["/b", "/b"]):
        pass
