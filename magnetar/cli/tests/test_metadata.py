"""`magnetar metadata repair`, as operators type it."""

import os
from pathlib import Path

import trio
from click.testing import CliRunner, Result

from magnetar.cli.root import root
from magnetar.core.metadata import log_file
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.metadata.history import Names, hold
from magnetar.core.metadata.tests.stores import flip
from magnetar.core.testing.metadata import overwrite
from magnetar.operator_error import OperatorError
from magnetar.process.data_directory import opened


async def _fill(path: Path) -> None:
    async with open_embedded(path, sync=False) as store:
        for i in range(5):
            await overwrite(store, f"/n/{i}", b"")


def _repair(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["metadata", "repair", "--data-dir", str(folder), *arguments])


def test_damage_is_said_and_then_left_out(tmp_path: Path) -> None:
    with opened(str(tmp_path)):
        trio.run(_fill, tmp_path / "metadata")
    assert _repair(tmp_path).output == "the metadata is whole: 5 commits\n"
    names = Names(tmp_path / "metadata")
    flip(names.log(1), log_file.read(names.log(1)).commits[1].end + 30)
    result = _repair(tmp_path)
    assert "whole up to commit 2, and 5 were acknowledged" in result.output
    assert "1 are lost, numbers 3:" in result.output
    assert isinstance(result.exception, OperatorError)
    assert "--accept-loss" in str(result.exception)
    result = _repair(tmp_path, "--accept-loss")
    assert (result.exit_code, result.exception) == (0, None)
    assert "repaired" in result.output
    assert "is whole" in _repair(tmp_path).output


def test_a_running_server_is_left_alone(tmp_path: Path) -> None:
    with opened(str(tmp_path)):
        assert "in use" in str(_repair(tmp_path).exception)


def test_running_metadata_is_left_alone_by_whatever_way_it_is_reached(tmp_path: Path) -> None:
    with opened(str(tmp_path)):
        trio.run(_fill, tmp_path / "metadata")
    lock = hold(Names(tmp_path / "metadata"))
    try:
        assert "in use" in str(_repair(tmp_path).exception)
    finally:
        os.close(lock)


def test_what_is_no_data_directory_is_not_made_one(tmp_path: Path) -> None:
    assert "no data directory" in str(_repair(tmp_path / "a").exception)
    assert not (tmp_path / "a").exists()
