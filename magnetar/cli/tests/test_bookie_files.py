"""`magnetar bookie read-journal`, `read-log` and `last-mark`, as operators type them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import magnetar
from magnetar.bookie.dump.tests.files import a_journal, an_entry_log, changed, run
from magnetar.bookie.format.journal import Mark
from magnetar.cli.root import root

JOURNAL = """\
         0  header, version 6
       512  master key of ledger 7 000102030405060708090a0b0c0d0e0f10111213
       556  entry 7:0, 76 bytes, LAC -1, length 40, CRC32C
"""


def _run(*words: object) -> Result:
    return CliRunner().invoke(root, ["bookie", *map(str, words)])


def _lines(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.output.splitlines()]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "1.txn"
    path.write_bytes(a_journal())
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(an_entry_log())
    return path


def test_a_journal(journal: Path) -> None:
    result = _run("read-journal", journal)
    assert (result.exit_code, result.exception) == (0, None)
    assert result.output.startswith(JOURNAL)
    assert result.output.endswith(
        "6 entries of 2 ledgers; 0 with a wrong digest, 0 places without a meaning\n"
    )
    assert "fence of ledger 7\n" in result.output
    assert "padding, 228 bytes, seal intact\n" in result.output


def test_a_journal_as_json(journal: Path) -> None:
    parts = _lines(_run("read-journal", journal, "--json"))
    assert [part["part"] for part in parts[:3]] == ["header", "note", "entry"]
    assert parts[2]["crc32c"] is True
    assert parts[-1]["part"] == "summary"
    assert parts[-1]["entries"] == 6


def test_an_entry_log(log: Path) -> None:
    result = _run("read-log", log)
    assert result.exit_code == 0
    assert "header, version 1, map of 2 ledgers at 1424\n" in result.output
    assert "entry 8:6, 76 bytes, LAC 4, length 80, CRC32C\n" in result.output
    assert "ledgers map, bytes by ledger: 7: 240, 8: 160\n" in result.output
    maps = [part for part in _lines(_run("read-log", log, "--json")) if "map" in part["part"]]
    assert maps == [{"part": "ledgers map", "offset": 1424, "ledgers": {"7": 240, "8": 160}}]


def test_one_ledger_and_its_payloads(log: Path) -> None:
    parts = _lines(_run("read-log", log, "--ledger", 8, "--payload", "--json"))
    assert [part.get("entry") for part in parts] == [5, 6, None]
    assert bytes.fromhex(parts[0]["behind_header"])[4:] == b"entry 5 " * 5
    text = _run("read-log", log, "--ledger", 8, "--payload").output.splitlines()
    assert text[1].strip() == parts[0]["behind_header"]


def test_from_an_offset(log: Path) -> None:
    start = 1024 + len(run(7, 0, 3))
    parts = _lines(_run("read-log", log, "--from", start, "--json"))
    assert [part.get("entry") for part in parts[:2]] == [5, 6]


@pytest.mark.parametrize("command", ["read-journal", "read-log"])
def test_damage_is_shown_with_what_is_behind_it(journal: Path, log: Path, command: str) -> None:
    path = journal if command == "read-journal" else log
    data = path.read_bytes()
    second = data.index(run(7, 1, 1)[:20])
    path.write_bytes(changed(data, second, 0x70))
    result = _run(command, path)
    assert result.exit_code == 1
    end = second + len(run(7, 1, 1))
    assert f"{second:10}  DAMAGE up to {end}: no record: 70" in result.output
    assert "entry 7:2," in result.output
    path.write_bytes(changed(data, second + 60, 0))
    result = _run(command, path)
    assert result.exit_code == 1
    assert "; 1 with a wrong digest, 0 places" in result.output


def test_files_that_are_something_else(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for command in ("read-journal", "read-log"):
        result = _run(command, empty)
        assert (result.exit_code, "DAMAGE" in result.output) == (1, True)
        assert _run(command, tmp_path / "none").exit_code == 2
        assert _run(command, tmp_path).exit_code == 2


def test_a_file_of_the_other_kind_is_named(journal: Path, log: Path) -> None:
    for command, path, other in (
        ("read-log", journal, "read-journal"), ("read-journal", log, "read-log"),
    ):  # fmt: skip
        assert f"{path} is read with `magnetar bookie {other}`" in str(
            _run(command, path).exception
        )


def test_the_mark_of_a_server(tmp_path: Path) -> None:
    with magnetar.standalone(tmp_path / "data"):
        pass
    file = tmp_path / "data/bookie/ledgers/current/lastMark"
    for path in (tmp_path / "data", file.parent.parent, file.parent, file):
        (found,) = json.loads(_run("last-mark", path, "--json").output)
        assert found["file"] == str(file)
        assert (tmp_path / "data/bookie/journal/current" / found["journal"]).exists()
    assert " a replay begins in " in _run("last-mark", file).output


def test_marks_of_several_journals_and_none(tmp_path: Path) -> None:
    assert "there is no lastMark" in str(_run("last-mark", tmp_path).exception)
    for place in range(2):
        (tmp_path / f"lastMark.{place}").write_bytes(Mark(255, 512 + place).encode())
    (tmp_path / "lastMark.0.new").touch()
    found = json.loads(_run("last-mark", tmp_path, "--json").output)
    assert [(each["journal"], each["offset"]) for each in found] == [
        ("ff.txn", 512), ("ff.txn", 513),
    ]  # fmt: skip
    (tmp_path / "lastMark.1").write_bytes(b"short")
    assert "a mark has 16 bytes" in str(_run("last-mark", tmp_path).exception)
