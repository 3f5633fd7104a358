"""`magnetar bookie` as a process: ready, adds and reads, a clean stop, `kill -9`, refusals."""

import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from magnetar.bookie.format import digests
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.tests.peers import KEY, add
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Added, BookieMessage, Read, ReadEntry, Status
from magnetar.cli.root import root
from magnetar.operator_error import OperatorError

DUMMY = digests.digest_type(LedgerMetadata.DUMMY, b"")
SECONDS_AT_ONCE = 4.0
"""On a busy machine; a drain may take twice as long."""
MAGNETAR = str(Path(sys.executable).with_name("magnetar"))


class Bookie:
    """A process, and one connection to it."""

    def __init__(self, folder: Path, *more: str) -> None:
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                MAGNETAR, "bookie", "--data-dir", str(folder / "data"), "--port", "0",
                "--bookie-id", "b1", "--ready-file", str(ready), "--log-level", "warning", *more,
            ],
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while not ready.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
        host, port = json.loads(ready.read_text())["bookie"].split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def ask(self, request: BookieMessage) -> BookieMessage:
        body = version2.pack_request(request)
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        (size,) = struct.unpack(">I", self.socket.recv(4, socket.MSG_WAITALL))
        return version2.parse_response(self.socket.recv(size, socket.MSG_WAITALL))


ZOOKEEPER = "zk+hierarchical://127.0.0.1:{}/ledgers"
CONNECTING = {
    "bookie": ("--metadata-uri", ZOOKEEPER, "--port", "0"),
    "recovery": ("--metadata-uri", ZOOKEEPER),
    "gateway": ("--bookkeeper", ZOOKEEPER, "--metadata", "zk:127.0.0.1:{}"),
}


@pytest.mark.parametrize("command", CONNECTING)
def test_a_signal_while_zookeeper_says_nothing_ends_it_at_once(
    command: str, tmp_path: Path
) -> None:
    """Nothing was received, so nothing is drained."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        port = silent.getsockname()[1]
        words = [word.format(port) for word in CONNECTING[command]]
        if command == "bookie":
            words += ["--data-dir", str(tmp_path)]
        process = subprocess.Popen([MAGNETAR, command, *words], stderr=subprocess.PIPE)
        connection, _ = silent.accept()
        with connection:
            began = time.monotonic()
            process.terminate()
            _, said = process.communicate(timeout=30)
            took = time.monotonic() - began
    assert process.returncode == 0, said
    assert took < SECONDS_AT_ONCE
    assert b"Traceback" not in said


@contextmanager
def running(folder: Path, *more: str) -> Iterator[Bookie]:
    bookie = Bookie(folder, *more)
    try:
        yield bookie
    finally:
        bookie.socket.close()
        bookie.process.kill()
        bookie.process.wait()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_acknowledged_is_there_after_the_next_start(
    tmp_path: Path, end: signal.Signals
) -> None:
    with running(tmp_path) as bookie:
        for entry_id in range(3):
            assert bookie.ask(add(1, entry_id, b"p")) == Added(Status.OK, 1, entry_id)
            assert bookie.ask(add(3, entry_id, b"", digest=DUMMY)) == Added(Status.OK, 3, entry_id)
        fenced = bookie.ask(Read(2, -1, KEY, fence=True))
        assert fenced == ReadEntry(Status.NO_ENTRY, 2, -1)
        bookie.socket.close()
        bookie.process.send_signal(end)
        assert bookie.process.wait(30) == (0 if end == signal.SIGTERM else -end)
    with running(tmp_path) as bookie:
        for entry_id in range(3):
            found = bookie.ask(Read(1, entry_id))
            assert isinstance(found, ReadEntry)
            assert found.entry == add(1, entry_id, b"p").entry
            found = bookie.ask(Read(3, entry_id))
            assert isinstance(found, ReadEntry)
            assert found.entry == add(3, entry_id, b"", digest=DUMMY).entry
        assert bookie.ask(add(2, 0)) == Added(Status.FENCED, 2, 0)


def test_journal_and_ledgers_on_other_disks(tmp_path: Path) -> None:
    journal, ledgers = tmp_path / "j", tmp_path / "l"
    more = ("--journal-dir", str(journal), "--ledger-dirs", str(ledgers))
    with running(tmp_path, *more) as bookie:
        assert bookie.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        assert list(journal.glob("current/*.txn"))
        cookie = (ledgers / "current/VERSION").read_text()
        assert f'journalDir: "{journal}"' in cookie
        assert f'ledgerDirs: "1\\t{ledgers}"' in cookie
        other = Path(tmp_path / "other")
        other.mkdir()
        command = [MAGNETAR, "bookie", "--data-dir", str(other), "--port", "0", *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert f"{journal} is in use by another process" in done.stderr
    with running(tmp_path, *more) as bookie:
        assert bookie.ask(Read(1, 0)).status is Status.OK  # type: ignore[attr-defined]
    command = [MAGNETAR, "bookie", "--data-dir", str(tmp_path / "data"), "--bookie-id", "b1"]
    command += ["--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "is empty" in done.stderr) == (2, True)


def _refused(folder: Path, *more: str) -> str:
    command = [MAGNETAR, "bookie", "--data-dir", str(folder / "data"), "--bookie-id", "b1", *more]
    command += ["--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_several_ledger_directories_to_which_one_is_added(tmp_path: Path) -> None:
    parts = [tmp_path / name for name in ("l1", "l2", "l3")]
    two, three = (
        ("--ledger-dirs", ",".join(map(str, parts[:2]))),
        (
            "--ledger-dirs",
            ",".join(map(str, parts)),
        ),
    )
    lives = [two, two, (*three, "--allow-storage-expansion"), three]
    for entry_id, more in enumerate(lives):
        if entry_id == 2:
            assert "with other directories" in _refused(tmp_path, *three)
        with running(tmp_path, *more) as bookie:
            assert bookie.ask(add(1, entry_id)) == Added(Status.OK, 1, entry_id)
            for known in range(entry_id + 1):
                found = bookie.ask(Read(1, known))
                assert isinstance(found, ReadEntry)
                assert found.entry == add(1, known).entry
            bookie.socket.close()
            bookie.process.send_signal(signal.SIGTERM)
            assert bookie.process.wait(30) == 0
    logs = [len(list(part.glob("current/*.log"))) for part in parts]
    assert logs == [2, 1, 1], "in turn, one with each start"
    assert [part.joinpath("current/locations").exists() for part in parts] == [True, False, False]
    cookie = (parts[2] / "current/VERSION").read_text()
    assert "\\t".join(['"3', *map(str, parts)]) + '"' in cookie
    assert "with other directories" in _refused(tmp_path, *two)
    shutil.rmtree(parts[1] / "current")
    for flags in ((), ("--allow-storage-expansion",)):
        said = _refused(tmp_path, *three, *flags)
        assert f"{parts[1]}/current" in said
        assert "right disk" in said


def test_indexes_that_were_lost_are_rebuilt_and_nothing_is_denied_then(tmp_path: Path) -> None:
    with running(tmp_path) as bookie:
        for entry_id in range(20):
            assert bookie.ask(add(1, entry_id, b"p")) == Added(Status.OK, 1, entry_id)
            assert bookie.ask(add(3, entry_id, b"", digest=DUMMY)) == Added(Status.OK, 3, entry_id)
        bookie.socket.close()
        bookie.process.send_signal(signal.SIGTERM)
        assert bookie.process.wait(30) == 0
    for index in ("locations", "ledgers"):
        shutil.rmtree(tmp_path / "data/bookie/ledgers/current" / index)
    with running(tmp_path) as bookie:
        for entry_id in range(20):
            for sent in (add(1, entry_id, b"p"), add(3, entry_id, b"", digest=DUMMY)):
                found = bookie.ask(Read(sent.ledger_id, entry_id))
                assert isinstance(found, ReadEntry)
                assert found.entry == sent.entry
        lost = bookie.ask(Read(1, 20))
        assert lost == ReadEntry(Status.UNKNOWN_LEDGER_STATE, 1, 20)
        assert bookie.ask(add(1, 20)) == Added(Status.FENCED, 1, 20)
        again = add(1, 20, recovery=True, high_priority=True)
        assert bookie.ask(again) == Added(Status.OK, 1, 20)


@pytest.mark.parametrize("command", ["repair", "rebuild-index"])
def test_commands_for_whole_servers_leave_it_alone(tmp_path: Path, command: str) -> None:
    with running(tmp_path) as bookie:
        assert bookie.ask(add(1, 0)) == Added(Status.OK, 1, 0)
    arguments = ["bookie", command, "--data-dir", str(tmp_path / "data")]
    result = CliRunner().invoke(root, arguments)
    assert isinstance(result.exception, OperatorError)
    assert "bookie b1, which is not part of a whole server" in str(result.exception)


def test_a_bookie_imports_no_front_of_a_broker() -> None:
    """They would take a tenth of a second and some megabytes."""
    program = (
        "import sys, magnetar.bookie_server, magnetar.server; "
        "print(*[name for name in sys.modules if name.startswith('magnetar.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = done.stdout.split()
    assert "magnetar.bookie.requests.front" in imported
    fronts = [name for name in imported if name.startswith("magnetar.wire.") and "front" in name]
    assert not fronts
    assert not [name for name in imported if name.startswith("magnetar.core.broker")]
