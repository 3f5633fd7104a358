"""Real processes: start, ready, stop, and what happens when they cannot."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import magnetar
from magnetar.child import FREE_PORTS
from magnetar.wire.pulsar.tests import peer

Start = Callable[..., subprocess.Popen[str]]

HANGING = """
import sys, threading, trio
from magnetar import server
from magnetar.process.ready import ReadyReport
from magnetar.settings import load

async def never_drains(settings, ready, stop):
    ready(ReadyReport({}))
    await trio.sleep_forever()

async def stuck(settings, ready, stop):
    ready(ReadyReport({}))
    threading.Lock().acquire()
    lock = threading.Lock()
    lock.acquire()
    while True:
        lock.acquire(timeout=60)

async def fails(settings, ready, stop):
    raise ZeroDivisionError("ours")

settings = load("[limits]\\ndrain_seconds = 0.1", flags={"--data-dir": sys.argv[2]}).settings
sys.exit(server.run(settings, serve=globals()[sys.argv[1]]))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `python ARGUMENTS`; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def standalone(start: Start, tmp_path: Path) -> Start:
    """Start a server on free ports with `./data` and `./ready.json` in the test's folder."""

    def standalone(*flags: object) -> subprocess.Popen[str]:
        ready_file = ("--ready-file", tmp_path / "ready.json")
        return start("-m", "magnetar", "standalone", *FREE_PORTS, *ready_file, *flags)

    return standalone


def wait_for(process: subprocess.Popen[str], words: str) -> list[str]:
    """Read its log up to the line that ends in `words`."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if lines[-1].endswith(words):
            return lines
    raise AssertionError("\n".join(lines))


def test_it_says_where_it_listens_and_that_it_is_ready(standalone: Start, tmp_path: Path) -> None:
    process = standalone()
    lines = wait_for(process, " ready")
    ready = json.loads((tmp_path / "ready.json").read_text())
    assert ready.pop("pid") == process.pid
    assert list(ready) == ["pulsar", "kafka", "mqtt", "mqtt_ws", "http"]
    for name, address in ready.items():
        assert any(line.endswith(f"{name} listens on {address}") for line in lines)
        host, _, port = address.rpartition(":")
        assert host == "127.0.0.1"
        with socket.create_connection((host, int(port))):
            pass
    assert (tmp_path / "data" / "magnetar.json").exists()


def test_with_a_certificate_there_are_twins(
    standalone: Start, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    tls = ("--tls-certificate", certificate[0], "--tls-key", certificate[1])
    ports = [word for door in ("pulsar-tls", "kafka-tls", "mqtt-tls", "mqtt-wss", "https")
             for word in (f"--{door}-port", 0)]  # fmt: skip
    process = standalone(*ports, *tls)
    wait_for(process, " ready")
    ready = json.loads((tmp_path / "ready.json").read_text())
    plain = ["pulsar", "kafka", "mqtt", "mqtt_ws", "http"]
    assert list(ready) == [
        *plain,
        "pulsar_tls",
        "kafka_tls",
        "mqtt_tls",
        "mqtt_wss",
        "https",
        "pid",
    ]


def test_without_syncing_it_says_what_that_gives_up(standalone: Start) -> None:
    (warning,) = [line for line in wait_for(standalone("--no-sync"), " ready") if "warning" in line]
    assert "a power cut or a crash of the machine loses" in warning


def test_too_many_for_the_system_are_refused_in_order(start: Start, tmp_path: Path) -> None:
    """Where the system allows few open files, a peer too many is told so, and nothing lacks one."""
    limited = "import resource as r, runpy; r.setrlimit(r.RLIMIT_NOFILE, (400, 400)); "
    ports = [
        *FREE_PORTS,
        "--ready-file",
        tmp_path / "ready.json",
    ]
    run = limited + "runpy.run_module('magnetar', run_name='__main__')"
    process = start("-c", run, "standalone", *ports)
    lines = wait_for(process, " ready")
    assert any(
        "allows 400 open files: the server accepts only 174 connections" in line for line in lines
    )
    ready = json.loads((tmp_path / "ready.json").read_text())
    pulsar, http = (
        (host, int(port))
        for host, _, port in (ready[name].rpartition(":") for name in ("pulsar", "http"))
    )
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(pulsar)) for _ in range(500)]
        silent[-1].settimeout(10)
        silent[-1].sendall(peer.connect())
        assert peer.parse_frames(silent[-1].recv(4096))[0].kind == "ERROR"
        with socket.create_connection(http) as asker:
            asker.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert asker.recv(4096).startswith(b"HTTP/1.")
    process.terminate()
    assert "cannot accept" not in "".join(wait_for(process, " stopped"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(standalone: Start, tmp_path: Path, number: int) -> None:
    process = standalone()
    wait_for(process, " ready")
    process.send_signal(number)
    wait_for(process, " stopped")
    assert process.wait() == 0
    assert not (tmp_path / "ready.json").exists()


def test_the_first_lines_say_what_runs_with_what(standalone: Start, tmp_path: Path) -> None:
    config = tmp_path / "m.toml"
    config.write_text("")
    lines = wait_for(standalone("--config", config), " ready")
    assert f" magnetar.process.introduction: Magnetar {magnetar.__version__}, Python " in lines[0]
    assert "codec compiled" in lines[0] or "pure (" in lines[0]
    assert lines[1].endswith(f"configuration: {config}")
    assert f"data: {tmp_path / 'data'}, messages are synced" in lines[2]
    assert lines[-2].endswith("only clients on this machine can connect, without authentication")


def test_other_machines_are_let_in_only_if_that_is_said(standalone: Start) -> None:
    said = refusal(standalone("--host", "0.0.0.0"))
    assert "security.anonymous_beyond_loopback = true" in said


def test_a_server_that_all_may_reach_warns(standalone: Start, tmp_path: Path) -> None:
    config = tmp_path / "m.toml"
    config.write_text("[security]\nanonymous_beyond_loopback = true")
    lines = wait_for(
        standalone("--host", "0.0.0.0", "--no-sync", "--config", str(config)), " ready"
    )
    assert any(line.endswith("messages are not synced") for line in lines)
    warning = next(line for line in lines if "no authentication" in line)
    assert " warning " in warning
    assert "0.0.0.0" in warning


def test_without_a_terminal_a_hangup_changes_nothing(tmp_path: Path) -> None:
    """As a daemon has none: it is told so to read its configuration again."""
    process = _in_a_session(tmp_path, "")
    try:
        wait_for(process, " ready")
        process.send_signal(signal.SIGHUP)
        wait_for(process, "files with certificates and passwords are watched")
        process.terminate()
        wait_for(process, " stopped")
        assert process.wait() == 0
    finally:
        process.kill()
        process.communicate()


def test_the_end_of_its_terminal_ends_it_in_order(tmp_path: Path) -> None:
    held, given = os.openpty()
    process = _in_a_session(tmp_path, os.ttyname(given))
    try:
        wait_for(process, " ready")
        os.close(given)
        os.close(held)
        wait_for(process, " stopped")
        assert process.wait() == 0
        assert not (tmp_path / "ready.json").exists()
    finally:
        process.kill()
        process.communicate()


SESSION = """
import os, signal, sys
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it (nohup)
if sys.argv[1]:
    os.close(os.open(sys.argv[1], os.O_RDWR))  # the first one opened becomes the session's terminal
os.execv(sys.executable, [sys.executable, "-m", "magnetar", "standalone", *sys.argv[2:]])
"""


def _in_a_session(folder: Path, terminal: str) -> subprocess.Popen[str]:
    """A server in a session of its own, with that terminal or with none."""
    flags = ["--data-dir", str(folder / "data"), "--ready-file", str(folder / "ready.json")]
    ports = FREE_PORTS
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, terminal, *flags, *ports],
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_signal_ends_it_at_once(standalone: Start, tmp_path: Path) -> None:
    process = standalone()
    wait_for(process, " ready")
    process.send_signal(signal.SIGSTOP)  # so that both are there when it looks
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    # with several threads the system hands them over in any order
    assert process.wait() in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert not (tmp_path / "ready.json").exists()


def test_the_end_of_its_input_ends_it(standalone: Start) -> None:
    process = standalone("--stop-at-eof")
    wait_for(process, " ready")
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    wait_for(process, " stopped")
    assert process.wait() == 0


def test_when_it_has_stopped_it_is_gone(start: Start, tmp_path: Path) -> None:
    """The interpreter takes long to end where there was much, and the alarm is set."""
    code = """
import atexit, sys, time
from magnetar.cli import main
atexit.register(time.sleep, 60)
main()
"""
    (tmp_path / "m.toml").write_text("[limits]\ndrain_seconds = 5")
    ports = FREE_PORTS
    process = start("-c", code, "standalone", "--config", tmp_path / "m.toml", *ports)
    wait_for(process, " ready")
    process.terminate()
    wait_for(process, " stopped")
    assert process.wait() == 0


def test_a_drain_has_an_end(start: Start, tmp_path: Path) -> None:
    process = start("-c", HANGING, "never_drains", tmp_path / "data")
    wait_for(process, " ready")
    process.terminate()
    wait_for(process, "not drained within 0.1 s: closing the remaining connections")
    wait_for(process, "stopped before all was drained")
    assert process.wait() == 1


def test_even_when_it_hangs(start: Start, tmp_path: Path) -> None:
    process = start("-c", HANGING, "stuck", tmp_path / "data")
    wait_for(process, " ready")
    process.terminate()
    assert process.wait() == -signal.SIGALRM


def test_our_own_failure_is_told_with_its_traceback(start: Start, tmp_path: Path) -> None:
    process = start("-c", HANGING, "fails", tmp_path / "data")
    _, results = process.communicate()
    assert process.returncode == 1
    assert "critical magnetar.server: this server failed" in results
    assert "ZeroDivisionError: ours" in results


def refusal(process: subprocess.Popen[str]) -> str:
    """What a server says that refuses to start: one sentence, and exit 2."""
    _, results = process.communicate()
    assert process.returncode == 2, results
    assert results.count("\n") == 1, results
    assert results.startswith("magnetar: ")
    return results


def test_a_second_server_on_the_same_directory(standalone: Start) -> None:
    first = standalone()
    wait_for(first, " ready")
    results = refusal(standalone())
    assert f"is in use by another server (process {first.pid})" in results


def test_the_directory_is_free_after_a_kill(standalone: Start) -> None:
    first = standalone()
    wait_for(first, " ready")
    first.kill()
    first.wait()
    wait_for(standalone(), " ready")


def test_the_ready_file_of_a_killed_server_goes_with_the_next_start(
    standalone: Start, tmp_path: Path
) -> None:
    """Also when that comes to nothing: whoever waits for the file must not find an old one."""
    first = standalone()
    wait_for(first, " ready")
    first.kill()
    first.wait()
    assert (tmp_path / "ready.json").exists()
    refusal(standalone("--host", "192.0.2.1"))
    assert not (tmp_path / "ready.json").exists()


def test_a_refused_second_server_leaves_the_first_ones_ready_file(
    standalone: Start, tmp_path: Path
) -> None:
    first = standalone()
    wait_for(first, " ready")
    refusal(standalone())
    assert json.loads((tmp_path / "ready.json").read_text())["pid"] == first.pid


def test_a_busy_port(standalone: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        results = refusal(standalone("--pulsar-port", port))
    assert f"cannot listen on 127.0.0.1 port {port} for pulsar: the port is in use" in results


def test_a_foreign_directory(standalone: Start, tmp_path: Path) -> None:
    assert "is not a data directory" in refusal(standalone("--data-dir", tmp_path.parent))


def test_an_unwritable_directory(standalone: Start) -> None:
    assert "cannot use the data directory" in refusal(standalone("--data-dir", os.devnull))


def test_an_unwritable_ready_file(standalone: Start, tmp_path: Path) -> None:
    results = refusal_after_lines(standalone("--ready-file", tmp_path / "none" / "ready.json"))
    assert results.startswith("magnetar: cannot write the ready file")


def test_a_folder_for_a_ready_file(standalone: Start, tmp_path: Path) -> None:
    results = refusal(standalone("--ready-file", tmp_path))
    assert results.startswith(f"magnetar: cannot remove the ready file {tmp_path}: ")


def refusal_after_lines(process: subprocess.Popen[str]) -> str:
    """The same from a server that had already opened its doors."""
    _, results = process.communicate()
    assert process.returncode == 2
    assert "Traceback" not in results
    return results.splitlines()[-1]
