"""Hints about blocks: they change nothing that can be read."""

import os

from magnetar.bookie.machine import extents


def test_reserved_blocks_are_behind_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with path.open("r+b") as file:
        reserved = extents.reserve(file.fileno(), 3, 1 << 20)
    assert path.read_bytes() == b"abc"
    if reserved:
        assert path.stat().st_blocks * 512 >= 1 << 20
        os.truncate(path, 3)
        assert path.stat().st_blocks * 512 < 1 << 20


def test_what_cannot_be_done_is_said(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        assert not extents.reserve(file.fileno(), 3, 1 << 20)
    assert path.read_bytes() == b"abc"
