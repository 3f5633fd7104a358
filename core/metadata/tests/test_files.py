from pathlib import Path

import pytest

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.metadata import files


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced_whole(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "file"
    files.write_whole(path, b"one", sync=sync)
    files.write_whole(path, b"two!", sync=sync)
    assert path.read_bytes() == b"two!"
    assert list(tmp_path.iterdir()) == [path]


def test_writes_go_where_they_belong(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8))
    for sync in (True, False):
        fd = files.open_synced(path, sync=sync)
        files.write_at(fd, b"ab", 2 + 2 * sync, sync=sync)
        files.os.close(fd)
    assert path.read_bytes() == b"\0\0abab\0\0"


def test_a_checksum_copies_by_the_way(tmp_path: Path) -> None:
    path, copy = tmp_path / "file", tmp_path / "copy"
    data = bytes(range(256)) * 5000
    path.write_bytes(data)
    assert files.checksum(path, copy) == files.checksum(path) == (len(data), crc32c(data))
    assert copy.read_bytes() == data


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    lock = files.hold(tmp_path / "lock")
    assert lock is not None
    assert files.hold(tmp_path / "lock") is None
    files.os.close(lock)
    again = files.hold(tmp_path / "lock")
    assert again is not None
    files.os.close(again)
