"""What is durable, and what may go past the page cache."""

import os

import pytest

from magnetar.bookie.machine import durability


def test_aligned_bytes_are_zeros_that_may_be_written():
    data = durability.aligned(1024)
    assert bytes(data) == bytes(1024)
    data[:3] = b"abc"
    assert bytes(data[:4]) == b"abc\0"


def test_files_and_directories_are_synced(tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x")
        durability.sync_file(file.fileno())
    durability.sync_directory(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        durability.sync_directory(tmp_path / "nowhere")
    with pytest.raises(OSError, match="Bad file descriptor"):
        durability.sync_file(1_000_000)


def test_the_probe_leaves_nothing_behind(tmp_path):
    assert durability.direct_works(tmp_path) in (True, False)
    assert not os.listdir(tmp_path)
    assert not durability.direct_works(tmp_path / "nowhere")


def test_without_the_flags_it_does_not_work(tmp_path, monkeypatch):
    monkeypatch.setattr(durability, "DIRECT", 0)
    assert not durability.direct_works(tmp_path)
