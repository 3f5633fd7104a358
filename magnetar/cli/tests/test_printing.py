"""What commands that look at storage have in common."""

import sys

import pytest

from magnetar.cli import printing
from magnetar.core.kernel.errors import Corrupted
from magnetar.operator_error import OperatorError


def test_errors_of_storage_are_sentences() -> None:
    for error in (Corrupted("it is damaged"), FileNotFoundError("it is damaged")):
        with pytest.raises(OperatorError, match="it is damaged"), printing.sentences():
            raise error
    with pytest.raises(ZeroDivisionError), printing.sentences():
        raise ZeroDivisionError


def test_json_is_one_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    printing.print_json({"a": [1]})
    assert capsysbinary.readouterr().out == b'{"a":[1]}\n'


@pytest.mark.parametrize(
    ("error", "out", "output", "shown"),
    [
        (True, False, True, True),
        (True, True, False, True),
        (True, True, True, False),
        (False, False, True, False),
    ],
)
def test_progress_is_for_people_and_not_across_the_output(
    monkeypatch: pytest.MonkeyPatch, error: bool, out: bool, output: bool, shown: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: error, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: out, raising=False)
    assert printing.progress(10, "reading", output).hidden is not shown
