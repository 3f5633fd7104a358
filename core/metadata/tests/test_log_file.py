from pathlib import Path

import pytest

from magnetar.core.metadata import log_file
from magnetar.core.metadata.commit_log import Head

HEAD = Head(1, 0, 0, 0, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def bodies(path: Path) -> list[bytes]:
    return [commit.body for commit in log_file.read(path).commits]


def test_it_goes_on_where_it_ended(path: Path) -> None:
    log = log_file.create(path, HEAD, sync=True)
    log.append(b"one")
    log.append(b"two")
    log.close()
    again = log_file.reopen(path, log_file.read(path), sync=True)
    again.append(b"three")
    again.close()
    assert bodies(path) == [b"one", b"two", b"three"]


def test_it_grows_before_it_is_full(path: Path) -> None:
    log = log_file.create(path, HEAD, sync=False)
    expected = [bytes([i]) * 40_000 for i in range(30)]
    for body in expected:
        log.append(body)
    log.close()
    assert bodies(path) == expected


def test_a_commit_that_is_taken_back_never_was(path: Path) -> None:
    log = log_file.create(path, HEAD, sync=False)
    log.append(b"one")
    log.append(b"two, which is long enough to show")
    log.step_back()
    log.wipe()
    assert bodies(path) == [b"one"]
    log.append(b"2")
    log.close()
    assert bodies(path) == [b"one", b"2"]


def test_a_torn_tail_is_wiped(path: Path) -> None:
    log = log_file.create(path, HEAD, sync=False)
    log.append(b"one")
    end = log.position
    log.append(b"torn")
    log.close()
    with path.open("r+b") as file:
        file.seek(end + 8)
        file.write(b"\xff\xff")
    again = log_file.reopen(path, log_file.read(path), sync=False)
    assert again.position == end
    again.close()
    data = path.read_bytes()
    assert data[end:].count(0) == len(data) - end


def test_a_full_disk_shows_before_anything_is_written(path: Path, monkeypatch) -> None:
    log = log_file.create(path, HEAD, sync=False)
    log.append(b"one")

    def full(*_):
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(log_file.os, "pwrite", full)
        with pytest.raises(OSError, match="full"):
            log.append(bytes(log_file.FIRST_BYTES))
    log.step_back()
    log.wipe()
    log.append(b"two")
    log.close()
    assert bodies(path) == [b"one", b"two"]
