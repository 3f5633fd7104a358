"""Versions: the old one or the new one, wherever the process is killed."""

import os
from pathlib import Path

import pytest

from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.jobs.tables import versions
from magnetar.spark_connector.jobs.tables.versions import TableVersion, VersionedTable


class KilledInVersion(BaseException):
    """Nothing catches it, as nothing does a kill."""


def version(number: int) -> TableVersion:
    return TableVersion(number, {"t": (1, 2, number)}, number)


def written(table: VersionedTable, number: int) -> None:
    table.path(number).mkdir(parents=True, exist_ok=True)
    (table.path(number) / "part-0.parquet").write_text(str(number))


def published(folder: Path, number: int) -> None:
    with VersionedTable(folder) as table:
        written(table, number)
        table.publish(version(number))


def content(folder: Path) -> str:
    return (folder / "current/part-0.parquet").read_text()


def test_one_replaces_the_other(tmp_path: Path) -> None:
    with VersionedTable(tmp_path) as table:
        assert table.current() is None
    for number in (1, 2, 3):
        published(tmp_path, number)
        assert content(tmp_path) == str(number)
        with VersionedTable(tmp_path) as table:
            assert table.current() == version(number)
    assert {path.name for path in (tmp_path / "versions").iterdir()} == {"2", "3"}


def test_a_kill_at_each_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = []
    for at in range(50):
        folder = tmp_path / str(at)
        published(folder, 1)
        left = at

        def replace(source: object, target: object, call=os.replace) -> None:
            step()
            call(source, target)

        def sync(path: Path, call=versions.sync) -> None:
            step()
            call(path)

        def step() -> None:
            nonlocal left
            if left == 0:
                raise KilledInVersion
            left -= 1

        with monkeypatch.context() as patch:
            patch.setattr(versions.os, "replace", replace)
            patch.setattr(versions, "sync", sync)
            try:
                published(folder, 2)
            except KilledInVersion:
                ended = False
            else:
                ended = True
        with VersionedTable(folder) as table:
            now = table.current()
        assert now in (version(1), version(2))
        assert content(folder) == str(now.number)
        found.append(now.number)
        published(folder, now.number + 1)
        assert content(folder) == str(now.number + 1)
        if ended:
            break
    assert found == sorted(found)
    assert found[0] == 1
    assert len(found) > 4


def test_a_damaged_version_is_told(tmp_path: Path) -> None:
    published(tmp_path, 1)
    (tmp_path / "current/_about.json").write_text("x")
    with VersionedTable(tmp_path) as table, pytest.raises(ConnectorError, match="no version"):
        table.current()
