"""`magnetar bookie format`, as operators type it, on bookies that have run."""

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import magnetar
from magnetar.bookie.requests.tests.peers import add
from magnetar.bookie.rpc.messages import Added, Read, Status
from magnetar.cli.root import root
from magnetar.tests.test_bookie_server import running


def _run(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(root, ["bookie", "format", "--data-dir", str(folder), *more])


def _used(folder: Path, *more: str) -> None:
    """Run a bookie, and leave an entry in it."""
    with running(folder, *more) as bookie:
        assert bookie.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        bookie.process.send_signal(signal.SIGTERM)
        assert bookie.process.wait(30) == 0


def _has_entry(folder: Path, *more: str) -> bool:
    with running(folder, *more) as bookie:
        return bookie.ask(Read(1, 0)).status is Status.OK


def test_a_bookie_begins_anew(tmp_path: Path) -> None:
    _used(tmp_path)
    refused = _run(tmp_path / "data")
    assert str(refused.exception) == (
        "nothing was changed; --force drops all entries of the bookie b1"
    )
    assert _has_entry(tmp_path)
    result = _run(tmp_path / "data", "--force", "--json")
    assert (result.exit_code, json.loads(result.output)) == (0, {"bookie": "b1"})
    assert not _has_entry(tmp_path)
    _used(tmp_path)


def test_directories_elsewhere_must_be_named(tmp_path: Path) -> None:
    """Else the journal would be left, and the bookie would not start."""
    elsewhere = ("--journal-dir", str(tmp_path / "j"), "--ledger-dirs", str(tmp_path / "l"))
    _used(tmp_path, *elsewhere)
    for some in ((), elsewhere[:2], elsewhere[2:]):
        result = _run(tmp_path / "data", "--force", *some)
        assert result.exit_code != 0, some
    assert "say so with --journal-dir" in str(_run(tmp_path / "data", *elsewhere[2:]).exception)
    assert _has_entry(tmp_path, *elsewhere)
    assert _run(tmp_path / "data", "--force", *elsewhere).exit_code == 0
    assert not _has_entry(tmp_path, *elsewhere)


def test_what_was_cut_off_can_be_done_again(tmp_path: Path) -> None:
    """As long as there is a cookie, it is known whose directories they are."""
    _used(tmp_path)
    (tmp_path / "data/bookie/journal/current/VERSION").unlink()
    for path in (tmp_path / "data/bookie/journal/current").glob("*.txn"):
        path.unlink()
    assert _run(tmp_path / "data", "--force").exit_code == 0
    assert not _has_entry(tmp_path)


def test_a_bookie_of_a_cluster_is_not_formatted_without_it(tmp_path: Path) -> None:
    """It would be refused by its next start: the cluster still has its cookie."""
    _used(tmp_path)
    for path in (tmp_path / "data").glob("metadata*"):  # one of a cluster has none
        path.unlink()
    assert "say which with --metadata-uri" in str(_run(tmp_path / "data", "--force").exception)
    assert list((tmp_path / "data").rglob("VERSION"))


def test_the_bookie_of_a_server_is_left_alone(tmp_path: Path) -> None:
    with magnetar.standalone(tmp_path):
        pass
    assert "that of a whole server" in str(_run(tmp_path, "--force").exception)
    with magnetar.standalone(tmp_path):
        pass


def test_a_running_bookie_and_what_is_none(tmp_path: Path) -> None:
    with running(tmp_path):
        assert "in use" in str(_run(tmp_path / "data", "--force").exception)
    assert "no data directory" in str(_run(tmp_path / "none", "--force").exception)
    with magnetar.standalone(tmp_path / "server"):
        pass
    for path in (tmp_path / "server/bookie").rglob("VERSION"):
        path.unlink()
    assert "there is no bookie" in str(_run(tmp_path / "server", "--force").exception)


@pytest.mark.parametrize("text", ["nonsense", "9\n"])
def test_a_cookie_that_makes_no_sense(tmp_path: Path, text: str) -> None:
    _used(tmp_path)
    (tmp_path / "data/bookie/ledgers/current/VERSION").write_text(text)
    assert "VERSION: " in str(_run(tmp_path / "data", "--force").exception)
