"""What a person hears who waits for a recovery; `interop_tests/bookkeeper` has the commands."""

import pytest
from click.testing import CliRunner

from magnetar.cli.bookie_recovery import LOOKS_A_LINE, LedgersLeft
from magnetar.cli.printing import progress
from magnetar.cli.root import root

WAITS = "magnetar: nobody is the auditor: this waits until a recovery runs (`magnetar recovery`)\n"


def told(capsys: pytest.CaptureFixture[str], auditor: str | None, counts: list[int]) -> str:
    with progress(1, "ledgers", output=False) as bar:
        left = LedgersLeft(bar, "b:1", auditor)
        for count in counts:
            left.tell(count)
    return capsys.readouterr().err


def test_who_waits_for_nobody_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    needed = "magnetar: 2 ledgers need the bookie b:1\n"
    assert told(capsys, None, [2, 2, 1]) == WAITS + needed
    assert told(capsys, "a:1", [2, 2, 1]) == needed
    assert told(capsys, None, [0]) == ""


def test_the_rest_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "a:1", [9] * LOOKS_A_LINE + [4])
    assert said.splitlines()[1:] == ["magnetar: 4 ledgers need the bookie b:1"]


def test_switches_that_contradict_each_other() -> None:
    words = ["bookie", "autorecovery", "--enable", "--disable", "--metadata-uri", "zk:h:1"]
    assert "not both" in str(CliRunner().invoke(root, words).exception)
