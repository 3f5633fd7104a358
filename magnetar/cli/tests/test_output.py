"""Standard output that cannot be written, and commands that are interrupted while they wait."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

from magnetar.bookie.format import journal

MAGNETAR = [sys.executable, "-P", "-m", "magnetar"]
REPORTS = """
import sys
from magnetar.cli import output
output.open_output()
for line in ("one", "two", "three"):
    output.report(line)
sys.stderr.write("done")
"""


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


def test_a_command_that_waits_ends_with_an_interrupt() -> None:
    """Of a ZooKeeper that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"zk+hierarchical://127.0.0.1:{silent.getsockname()[1]}/ledgers"
        words = [*MAGNETAR, "bookie", "list", "--metadata-uri", uri]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            silent.accept()[0].close()  # it has begun to ask
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
        assert process.returncode == 130
