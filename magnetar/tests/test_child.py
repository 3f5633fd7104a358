"""`magnetar.standalone()`: what it gives, what it cleans up, and how it fails."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import magnetar
from magnetar import child
from magnetar.child import HeldPorts, StartError
from magnetar.folders import sweep
from magnetar.operator_error import OperatorError


def _answers(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_server_for_the_length_of_a_block() -> None:
    with magnetar.standalone() as server:
        assert server.pulsar_url.startswith("pulsar://127.0.0.1:")
        assert server.http_url.startswith("http://127.0.0.1:")
        assert _answers(server.pulsar_url)
        assert _answers(server.http_url)
        assert server.pid != os.getpid()
        assert server.running
        assert "pulsar listens on" in server.logs()
        folder = server.data_dir.parent
        assert (server.data_dir / "magnetar.json").exists()
    assert not server.running
    assert not folder.exists()


def test_two_at_once() -> None:
    with magnetar.standalone() as one, magnetar.standalone() as two:
        assert one.pulsar_url != two.pulsar_url
        assert one.data_dir != two.data_dir


def test_killed_and_started_again_on_the_same_ports_and_data() -> None:
    with magnetar.standalone() as server:
        before = (server.pulsar_url, server.http_url, server.data_dir)
        pid = server.pid
        server.kill()
        assert not server.running
        assert not _answers(server.pulsar_url)
        server.restart()
        assert _answers(server.pulsar_url)
        assert (server.pulsar_url, server.http_url, server.data_dir) == before
        assert server.pid != pid
        server.restart()
        assert server.logs().count("pulsar listens on") == 3


def test_it_may_end_by_itself() -> None:
    with magnetar.standalone() as server:
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert not server.running
        server.start()
        server.send_signal(signal.SIGKILL)
        assert server.wait() == -signal.SIGKILL


def test_a_directory_that_is_given_stays(tmp_path: Path) -> None:
    for _ in range(2):
        with magnetar.standalone(tmp_path) as server:
            assert server.data_dir == tmp_path
        assert (tmp_path / "magnetar.json").exists()


def test_settings_by_flag_and_by_section(certificate: tuple[Path, Path]) -> None:
    with magnetar.standalone(
        log_level="debug",
        sync=False,
        tls_certificate=certificate[0],
        tls={"key": str(certificate[1])},
        log={"levels": {"core": "error"}},
    ) as server:
        config = (server.data_dir.parent / "magnetar.toml").read_text()
        assert 'level = "debug"' in config
        assert "sync = false" in config
        assert server.pulsar_tls_url.startswith("pulsar+ssl://127.0.0.1:")
        assert _answers(server.https_url)


def test_the_environment_does_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGNETAR_LOG_FORMAT", "json")
    with magnetar.standalone() as server:
        assert " info    magnetar.server: pulsar listens on" in server.logs()


def test_a_wrong_setting_is_told_before_anything_starts() -> None:
    with pytest.raises(OperatorError, match="no setting brokr; did you mean broker"):
        magnetar.standalone(brokr={"max_message_size": 1})
    with pytest.raises(TypeError, match="no setting 'pulsar_prt'"):
        magnetar.standalone(pulsar_prt=1)


def test_a_server_that_does_not_come_up_shows_its_log() -> None:
    with (
        pytest.raises(StartError, match=r"(?s)ended with code 2.*does not have that address"),
        magnetar.standalone(host="192.0.2.1"),
    ):
        pass


def test_a_port_that_is_given_and_busy_is_no_reason_to_choose_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartError, match="in use"), magnetar.standalone(pulsar_port=port):
            pass


def test_a_port_that_was_taken_meanwhile_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody may be quicker between the choice of a port and the server's start."""
    with socket.create_server(("127.0.0.1", 0)) as quicker:
        choices = [{"pulsar_port": quicker.getsockname()[1]}]

        class BadlyChosenOnce(HeldPorts):
            def __init__(self, names: Sequence[str]) -> None:
                super().__init__(names)
                self.numbers |= choices.pop() if choices else {}

        monkeypatch.setattr(child, "HeldPorts", BadlyChosenOnce)
        with magnetar.standalone() as server:
            assert not choices
            assert "the port is in use" in server.logs()
            assert _answers(server.http_url)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can hold a port for another")
def test_nobody_takes_its_ports_while_it_is_down() -> None:
    with magnetar.standalone() as server:
        host, _, port = server.bootstrap_servers.partition(":")
        server.kill()
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((host, int(port)))
        assert not _answers(server.pulsar_url)
        server.start()
        assert server.bootstrap_servers == f"{host}:{port}"
        server.kill()
    with socket.socket() as other:
        other.bind((host, int(port)))


def test_one_that_does_not_stop_is_killed_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with magnetar.standalone() as server:
        server.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(child, "STOP_SECONDS", 0.1)
        with pytest.raises(subprocess.TimeoutExpired):
            server.stop()
        assert not server.running


def test_one_that_takes_too_long_to_start_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START_SECONDS", child.LOOK_SECONDS)
    with (
        pytest.raises(StartError, match=r"^not ready within 0\.005 s; the server wrote:"),
        magnetar.standalone(),
    ):
        pass


def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import magnetar, os, signal, sys\n"
        "with magnetar.standalone() as server:\n"
        "    sys.stdout.write(f'{server.pid}\\n'); sys.stdout.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == -signal.SIGKILL
    _wait_until_gone(int(done.stdout))
    assert len(sweep(tmp_path)) == 1, "its folder is there to be swept away"
    assert os.listdir(tmp_path) == []


def _wait_until_gone(pid: int) -> None:
    """Linux has a descriptor for a process that reads as ready at its end; elsewhere, ask."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no descriptors for processes")
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], 10)
        assert ready, "the server outlived its parent"
    finally:
        os.close(descriptor)


def test_importing_the_package_costs_nothing() -> None:
    heavy = ("trio", "msgspec", "click", "logging", "subprocess", "pulsar", "magnetar.child")
    code = (
        "import sys, magnetar;"
        f"sys.stdout.write(', '.join(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_it_offers_what_it_says() -> None:
    assert all(hasattr(magnetar, name) for name in magnetar.__all__)
    with pytest.raises(AttributeError, match="no attribute 'standalon'"):
        _ = magnetar.standalon  # type: ignore[attr-defined]  # on purpose
