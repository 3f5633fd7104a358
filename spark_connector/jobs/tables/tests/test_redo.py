"""Changes of files: whole, and once, wherever the process is killed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.jobs.tables import redo
from magnetar.spark_connector.jobs.tables.redo import FileChange, RedoLog

CHANGE = FileChange([("_jobs/a", "x/1"), ("_jobs/b", "y/2")], ["old"], "q", 3)


class Killed(BaseException):
    """Nothing catches it, as nothing does a kill."""


def prepared(folder: Path) -> None:
    (folder / "_jobs").mkdir()
    for name in ("_jobs/a", "_jobs/b", "old"):
        (folder / name).write_text(name)


def files(folder: Path) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.glob("*/*")}
    found |= {path.name: path for path in folder.glob("*") if path.is_file()}
    return {name: path.read_text() for name, path in found.items() if not name.startswith("_jobs/")}


def test_a_change(tmp_path: Path) -> None:
    prepared(tmp_path)
    with RedoLog(tmp_path) as log:
        assert not log.is_done("q", 3)
        log.commit(CHANGE)
        assert log.is_done("q", 3)
        assert log.is_done("q", 2)
        assert not log.is_done("q", 4)
        assert not log.is_done("other", 0)
    assert files(tmp_path) == {"x/1": "_jobs/a", "y/2": "_jobs/b"}


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Kills before the step of that number; the steps are recorded."""

    def set_up(at: int) -> list[str]:
        steps: list[str] = []

        def step(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
            def stepped(*arguments: Any, **more: Any) -> Any:
                if len(steps) == at:
                    raise Killed
                steps.append(name)
                return call(*arguments, **more)

            return stepped

        monkeypatch.setattr(redo.os, "replace", step("replace", os.replace))
        monkeypatch.setattr(redo, "sync", step("sync", redo.sync))
        monkeypatch.setattr(Path, "unlink", step("unlink", Path.unlink))
        return steps

    return set_up  # type: ignore[return-value]


def test_a_kill_at_each_step(killed_at, monkeypatch, tmp_path: Path) -> None:
    counted: list[bool] = []
    for at in range(100):
        folder = tmp_path / str(at)
        folder.mkdir()
        prepared(folder)
        killed_at(at)
        try:
            with RedoLog(folder) as log:
                log.commit(CHANGE)
        except Killed:
            ended = False
        else:
            ended = True
        monkeypatch.undo()
        with RedoLog(folder) as log:
            done = log.is_done("q", 3)
        before, after = {"old": "old"}, {"x/1": "_jobs/a", "y/2": "_jobs/b"}
        assert files(folder) == (after if done else before), f"killed before step {at}"
        assert not (folder / "_jobs/redo.json").exists()
        counted.append(done)
        if ended:
            break
    assert not counted[0]
    assert len(counted) > 10
    assert counted == sorted(counted), "from one step on it is done"


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with RedoLog(tmp_path), pytest.raises(ConnectorError, match="another job is writing there"):
        RedoLog(tmp_path)
    RedoLog(tmp_path).close()
