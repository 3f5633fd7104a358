"""The ready file is whole or not there."""

import json
import os
from pathlib import Path

import pytest

from magnetar.operator_error import OperatorError
from magnetar.process.ready import ReadyReport, remove_ready_file, write_ready_file

REPORT = ReadyReport({"pulsar": "127.0.0.1:6650", "http": "[::1]:8080"})


def test_it_holds_the_listeners_and_the_process(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    write_ready_file(str(path), REPORT)
    assert json.loads(path.read_text()) == {
        "pulsar": "127.0.0.1:6650",
        "http": "[::1]:8080",
        "pid": os.getpid(),
    }
    assert os.listdir(tmp_path) == ["ready.json"]


def test_it_goes_and_may_be_gone(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    write_ready_file(str(path), REPORT)
    remove_ready_file(str(path))
    remove_ready_file(str(path))
    remove_ready_file("")
    assert os.listdir(tmp_path) == []


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"cannot remove the ready file .*: "):
        remove_ready_file(str(tmp_path))
    remove_ready_file(str(tmp_path / "none" / "ready.json"))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"cannot write the ready file .*: No such file"):
        write_ready_file(str(tmp_path / "none" / "ready.json"), REPORT)
