"""Small files that are replaced whole."""

import os

import pytest

from magnetar.bookie.server.small_files import read_whole, size_of, write_whole
from magnetar.bookie.tests.real_disk import directory_at
from magnetar.core.testing.memory_disk import MemoryDisk


def test_a_write_that_is_short_is_gone_on_with(tmp_path, monkeypatch):
    directory = directory_at(tmp_path)
    write_whole(directory, "small", b"old")
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: write(fd, data[:1], offset))
    write_whole(directory, "small", b"new one")
    assert read_whole(directory, "small") == b"new one"
    assert size_of(directory, "small") == 7
    assert directory.names() == ["small"]


def test_a_file_that_is_not_there():
    directory = MemoryDisk().directory("/data")
    for question in (read_whole, size_of):
        with pytest.raises(FileNotFoundError):
            question(directory, "small")


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_leaves_the_old_one_or_the_new_one(seed):
    import random

    disk = MemoryDisk()
    directory = disk.directory("/data")
    write_whole(directory, "small", b"old" * 1000)
    before = disk.steps
    write_whole(directory, "small", b"new" * 2000)
    found = []
    for step, cut in disk.cuts(random.Random(seed).randrange):
        if step >= before:
            found.append(read_whole(cut.directory("/data"), "small"))
    assert set(found) <= {b"old" * 1000, b"new" * 2000}
    assert found[-1] == b"new" * 2000
