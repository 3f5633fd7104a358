"""What commands have in common, also when they are interrupted while they wait."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.bookie.format import journal
from magnetar.cli import printing
from magnetar.core.kernel.errors import Corrupted
from magnetar.operator_error import OperatorError

MAGNETAR = [sys.executable, "-P", "-m", "magnetar"]
REPORTS = """
import sys
from magnetar.cli import printing
printing.open_output()
for line in ("one", "two", "three"):
    printing.report(line)
sys.stderr.write("done")
"""


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


def run_without_reader(*words: str) -> tuple[int, str]:
    """How a command ends whose standard output is a pipe that nobody reads."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    return process.returncode, said


def test_a_command_that_prints_ends_with_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "1.txn"
    path.write_bytes(journal.HEADER)
    assert run_without_reader(*MAGNETAR, "bookie", "read-journal", str(path)) == (141, "")
    assert run_without_reader(*MAGNETAR, "--help") == (141, "")


def test_output_that_is_full_is_a_sentence() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*MAGNETAR, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "magnetar: standard output: No space left on device\n"


def test_what_is_repaired_goes_on_without_a_reader() -> None:
    code, said = run_without_reader(sys.executable, "-c", REPORTS)
    assert code == 0
    assert said == "magnetar: standard output: Broken pipe: the work goes on without it\ndone"


@pytest.mark.parametrize("command", [["bookie", "list"], ["ledger", "read", "1"]])
def test_a_command_that_waits_says_so_and_ends_with_an_interrupt(command: list[str]) -> None:
    """Of a ZooKeeper that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"zk+hierarchical://127.0.0.1:{silent.getsockname()[1]}/ledgers"
        words = [*MAGNETAR, *command, "--metadata-uri", uri]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("magnetar: waiting for ZooKeeper at 127.0.0.1:")
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() in ("", "\n")
        assert process.returncode == 130
