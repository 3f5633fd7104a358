"""Folders go with their owners; what killed owners left behind is swept away, and nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.folders import LOCK, PREFIX, Folder, sweep

KILLED = """
import os, signal, sys
from magnetar.folders import Folder
folder = Folder()
(folder.path / "data").mkdir()
(folder.path / "data" / "file").touch()
sys.stdout.write(str(folder.path)); sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made in this test, here and in processes it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_it_is_there_until_it_is_removed(parent: Path) -> None:
    folder = Folder()
    assert folder.path.parent == parent
    assert sweep(parent) == []
    assert folder.path.is_dir()
    folder.remove()
    assert os.listdir(parent) == []


def test_what_a_killed_owner_left_is_swept_away(parent: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout)
    assert (left / "data" / "file").exists()
    assert sweep(parent) == [left / LOCK]
    assert os.listdir(parent) == []


def test_a_server_that_inherited_the_lock_keeps_the_folder(parent: Path) -> None:
    folder = Folder()
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(folder.lock,)
    )
    os.close(folder.lock)  # as if this process were killed
    assert sweep(parent) == []
    child.communicate(b"\n")
    assert len(sweep(parent)) == 1


def test_what_has_no_lock_is_somebody_elses(parent: Path) -> None:
    (parent / f"{PREFIX}thesis").mkdir()
    assert sweep(parent) == []
    assert os.listdir(parent) == [f"{PREFIX}thesis"]
