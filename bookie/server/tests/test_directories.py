"""Small files that are replaced whole."""

import os

from magnetar.bookie.server.directories import write_whole


def test_a_write_that_is_short_is_gone_on_with(tmp_path, monkeypatch):
    path = tmp_path / "small"
    write_whole(path, b"old")
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:1]))
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["small"]
