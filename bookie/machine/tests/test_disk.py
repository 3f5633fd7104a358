"""This system's disk keeps the contract of the port, and what only it can do."""

import os

import pytest

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_disk")

from magnetar.bookie.machine import disk as disk_module  # noqa: E402 (after the rewrite)
from magnetar.bookie.machine.disk import SystemDisk  # noqa: E402
from magnetar.core.ports.disk import Creation, WriteMode  # noqa: E402
from magnetar.core.ports.tests.contract_disk import CHECKS  # noqa: E402


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(tmp_path, check):
    disk = SystemDisk()
    check(disk, disk.directory(str(tmp_path)))


def test_directories_are_made_with_their_parents_and_synced(tmp_path, monkeypatch):
    synced = []
    sync = disk_module._sync_names
    monkeypatch.setattr(disk_module, "_sync_names", lambda path: (synced.append(path), sync(path)))
    SystemDisk().directory(str(tmp_path / "a" / "b"))
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    SystemDisk().directory(str(tmp_path / "a" / "b"))
    assert len(synced) == 2, "what was there is left alone"


def test_a_file_in_place_of_a_directory_is_not_taken_for_one(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(FileExistsError):
        SystemDisk().directory(str(tmp_path / "a"))


def test_a_directory_below_a_relative_path_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SystemDisk().directory("a").directory("b")
    assert (tmp_path / "a" / "b").is_dir()


def test_without_the_flags_direct_writes_do_not_work(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_module, "DSYNC", 0)
    assert not SystemDisk().directory(str(tmp_path)).direct


def test_a_directory_that_is_gone_has_no_direct_writes(tmp_path):
    directory = SystemDisk().directory(str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    assert not directory.direct


def test_blocks_that_are_reserved_are_behind_the_end(tmp_path):
    directory = SystemDisk().directory(str(tmp_path))
    file = directory.open_for_writing("file", Creation.NEW)
    file.pwrite(b"abc", 0)
    if file.reserve(3, 1 << 20):
        assert os.stat(tmp_path / "file").st_blocks * 512 >= 1 << 20
    assert (tmp_path / "file").read_bytes() == b"abc"
    file.truncate(3)
    assert os.stat(tmp_path / "file").st_blocks * 512 < 1 << 20
    file.close()


def test_writes_are_submitted_where_the_system_can(tmp_path):
    disk = SystemDisk()
    directory = disk.directory(str(tmp_path))
    buffer = disk_module.aligned(512)
    buffer[:3] = b"abc"
    writes = disk.submitted_writes(buffer)
    if writes is None or not directory.direct:
        pytest.skip("this system or its file system does not write by itself")
    zeroed = directory.open_for_writing("file", Creation.NEW, WriteMode.DIRECT)
    zeroed.pwrite(disk_module.aligned(4096), 0)
    zeroed.sync()
    zeroed.close()
    file = directory.open_for_writing("file", Creation.EXISTING, WriteMode.DIRECT_SYNC)
    written = None
    while written is None:
        try:
            if not writes.busy:
                writes.begin(file.fileno(), 0, 0, 512)
            writes.wait()
            written = writes.ended()
        except BlockingIOError:
            continue
    assert written == 512
    assert (tmp_path / "file").read_bytes()[:3] == b"abc"
    writes.close()
    file.close()
