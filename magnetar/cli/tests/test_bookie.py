"""`magnetar bookie rebuild-index` and `repair`, as operators type them."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import magnetar
from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.server.directories import claim
from magnetar.cli.root import root


@pytest.fixture
def used(tmp_path: Path) -> Path:
    with magnetar.standalone(tmp_path / "data"):
        pass
    return tmp_path / "data"


def _run(command: str, folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["bookie", command, "--data-dir", str(folder), *arguments])


def test_the_index_is_rebuilt_by_hand(used: Path) -> None:
    index = used / "bookie/ledgers/current/locations"
    (index / "old").touch()
    result = _run("rebuild-index", used)
    assert (result.exit_code, result.exception) == (0, None)
    assert result.output.endswith("rebuilt\n")
    assert not (index / "old").exists()
    with magnetar.standalone(used) as server:
        assert "rebuilding" not in server.logs()


def test_a_journal_is_repaired(used: Path) -> None:
    assert _run("repair", used).output == "the journal is intact\n"
    for path in (used / "bookie/journal/current").glob("*.txn"):
        path.unlink()
    result = _run("repair", used)
    assert "is missing" in result.output
    assert "--accept-loss" in str(result.exception)
    with pytest.raises(magnetar.child.StartError, match="magnetar bookie repair"):
        magnetar.standalone(used).__enter__()
    result = _run("repair", used, "--accept-loss")
    assert (result.exit_code, result.exception) == (0, None)
    with magnetar.standalone(used):
        pass


def test_what_is_damaged_besides_the_index_is_said_with_its_way_out(used: Path) -> None:
    mark = used / "metadata.end"
    kept = mark.read_bytes()
    mark.unlink()
    assert "magnetar metadata repair" in str(_run("rebuild-index", used).exception)
    mark.write_bytes(kept)
    for path in (used / "bookie/journal/current").glob("*.txn"):
        path.unlink()
    assert "magnetar bookie repair" in str(_run("rebuild-index", used).exception)


def test_a_bookie_that_is_missing_is_neither_whole_nor_made(used: Path) -> None:
    (used / "bookie").rename(used / "elsewhere")
    for command in ("rebuild-index", "repair"):
        assert "there is no bookie" in str(_run(command, used).exception)
    assert not (used / "bookie").exists()


def test_a_running_bookie_is_left_alone_by_whatever_way_it_is_reached(used: Path) -> None:
    with claim(SystemDisk(), str(used / "bookie")):
        for command in ("rebuild-index", "repair"):
            assert "in use" in str(_run(command, used).exception)
        assert not list((used / "bookie").rglob("WORN"))


def test_what_is_not_there_is_a_sentence(tmp_path: Path, used: Path) -> None:
    for command in ("rebuild-index", "repair"):
        assert "no data directory" in str(_run(command, tmp_path / "a").exception)
    shutil.rmtree(used / "bookie")
    assert "there is no bookie" in str(_run("rebuild-index", used).exception)
