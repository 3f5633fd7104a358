"""Files of this system: the flags they are opened with, what a sync says."""

import os

import pytest

from magnetar.bookie.machine import files
from magnetar.bookie.machine.files import SystemReadFile, SystemWriteFile, sync_descriptor
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
