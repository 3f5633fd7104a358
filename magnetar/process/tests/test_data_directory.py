"""Whose directory it is, who holds it, and what is said otherwise."""

import json
import os
from pathlib import Path

import pytest

from magnetar.operator_error import OperatorError
from magnetar.process.data_directory import FORMAT, LOCK, MARKER, existing, opened


def test_it_is_made_with_its_parents(tmp_path: Path) -> None:
    where = tmp_path / "a" / "b"
    with opened(str(where)) as path:
        assert path == where
        assert json.loads((path / MARKER).read_text()) == {"format": FORMAT}
        assert sorted(os.listdir(path)) == [LOCK, MARKER]


def test_it_opens_again_with_what_it_holds(tmp_path: Path) -> None:
    with opened(str(tmp_path)) as path:
        (path / "journal").mkdir()
    with opened(str(tmp_path)) as path:
        assert (path / "journal").is_dir()


def test_only_one_holds_it(tmp_path: Path) -> None:
    with opened(str(tmp_path)), pytest.raises(OperatorError) as caught, opened(str(tmp_path)):
        pass
    assert str(caught.value) == (
        f"the data directory {tmp_path} is in use by another server (process {os.getpid()})"
    )


def test_a_crash_between_lock_and_marker_is_harmless(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("123\n")
    (tmp_path / (MARKER + ".new")).write_text("")
    with opened(str(tmp_path)) as path:
        assert (path / MARKER).exists()


def test_a_fresh_file_system_is_empty(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    with opened(str(tmp_path)) as path:
        assert (path / MARKER).exists()


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(OperatorError, match=r"is not a data directory: it has other files"):
        opened(str(tmp_path)).__enter__()
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_newer_format(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(OperatorError) as caught:
        opened(str(tmp_path)).__enter__()
    assert str(caught.value) == (
        f"the data directory {tmp_path} has format {FORMAT + 1}, but this version knows only up to "
        f"{FORMAT}: a newer version of Magnetar wrote it"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"x"'])
def test_a_damaged_marker(tmp_path: Path, content: str) -> None:
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(OperatorError, match="is damaged: it does not state the format"):
        opened(str(tmp_path)).__enter__()


def test_an_older_format_is_raised_before_anything_else_is_written(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(json.dumps({"format": 1}))
    with opened(str(tmp_path)):
        assert json.loads((tmp_path / MARKER).read_text()) == {"format": FORMAT}


def test_a_lost_marker_is_told_from_a_foreign_directory(tmp_path: Path) -> None:
    (tmp_path / "metadata.end").touch()
    (tmp_path / "bookie").mkdir()
    with pytest.raises(OperatorError, match=r"has lost its magnetar\.json: restore it, or write"):
        opened(str(tmp_path)).__enter__()


def test_what_is_looked_after_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no data directory"), existing(str(tmp_path / "a")):
        pass
    assert not (tmp_path / "a").exists()
    with opened(str(tmp_path)):
        pass
    with existing(str(tmp_path)) as path:
        assert path == tmp_path


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match=r"cannot use the data directory .*: it is a file"):
        opened(str(tmp_path / "file")).__enter__()
    with pytest.raises(OperatorError, match=r"cannot use the data directory .*: Not a directory"):
        opened(str(tmp_path / "file" / "below")).__enter__()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OperatorError, match=r"cannot use the data directory .*: Permission denied"):
        opened(str(tmp_path)).__enter__()
