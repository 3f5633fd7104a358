"""`magnetar.standalone()`: a real server process for tests, from plain synchronous code.

    with magnetar.standalone(broker={"max_message_size": 1_000_000}) as server:
        client = pulsar.Client(server.pulsar_url)

It is the same server that users run, in its own process, with its own data. Its standard input is a
pipe from this process: when this process dies, for whatever reason, the server reads the end of
file and stops (`--stop-at-eof`).

Ports are chosen outside the range from which the system takes ports for outgoing connections, and
are held until the block ends (`HeldPorts`). Otherwise, while a killed server is down, a client or
another test's server could get its port, and the restart would fail.

Invariant: after the block no process and no temporary directory is left. If this process is killed
inside the block, the next one that uses `standalone()` removes the directory (`folders.py`).
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from magnetar.folders import Folder
from magnetar.settings import FLAGS, SETTINGS, load
from magnetar.settings.server import OPTIONAL_PORTS, PORTS, TLS_PORTS
from magnetar.settings.toml import write_tables

START_SECONDS: Final = 90.0
"""Enough for a server that recovers a large data directory on a busy machine."""
STOP_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.005
"""Time between checks for the ready file."""
PORT_ATTEMPTS: Final = 5
"""Another process may take a port between our choice and the server's start."""
PORT_FIRST: Final = 10_000
EPHEMERAL_FIRST: Final = 32_768
"""The start of Linux's default range, if the system does not say."""

FREE_PORTS: Final = tuple(word for port in PORTS for word in (f"--{port.replace('_', '-')}", "0"))
"""Flags for any free ports."""
STANDALONE: Final = ("standalone", "--stop-at-eof")
LAST_WORDS_MAX: Final = 100_000
"""Characters of the log that stay available after the server has ended."""


class StartError(Exception):
    """The server did not start; the message gives the reason and its log."""


def standalone(data_dir: str | os.PathLike[str] | None = None, **settings: Any) -> "Standalone":
    """A server on free ports, in a temporary directory or in `data_dir`, for a `with` statement.

    Pass settings by section (`broker={"max_message_size": 1000}`) or, if the command line
    has a flag for one, by the flag's name (`log_level="debug"`, `sync=False`).
    """
    return Standalone(_tables(settings), Path(data_dir) if data_dir is not None else None)


class Standalone:
    """One server, which can be killed, stopped and started again on the same ports and data."""

    def __init__(
        self,
        tables: dict[str, dict[str, Any]],
        data_dir: Path | None,
        command: Sequence[str] = STANDALONE,
    ) -> None:
        """`command` is the subcommand that runs the server, with its flags."""
        load(write_tables(tables), "magnetar.standalone()")  # report mistakes before any start
        self._tables = tables
        self._given_data_dir = data_dir
        self._command = command
        self._folder: Folder | None = None
        self._last_words = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: HeldPorts | None = None
        self._ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._folder = Folder()
        try:
            self.start()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._clean_up()

    # -- what it is ---------------------------------------------------------------------------

    @property
    def pulsar_url(self) -> str:
        return f"pulsar://{self._ready['pulsar']}"

    @property
    def bootstrap_servers(self) -> str:
        """The server's address for Kafka clients, under the name of their option."""
        return str(self._ready["kafka"])

    @property
    def http_url(self) -> str:
        return f"http://{self._ready['http']}"

    @property
    def pulsar_tls_url(self) -> str:
        """The URL for TLS; requires a certificate in the settings."""
        return f"pulsar+ssl://{self._ready['pulsar_tls']}"

    @property
    def bootstrap_servers_tls(self) -> str:
        return str(self._ready["kafka_tls"])

    @property
    def mqtt_url(self) -> str:
        return f"mqtt://{self._ready['mqtt']}"

    @property
    def mqtt_tls_url(self) -> str:
        return f"mqtts://{self._ready['mqtt_tls']}"

    @property
    def mqtt_ws_url(self) -> str:
        return f"ws://{self._ready['mqtt_ws']}/mqtt"

    @property
    def mqtt_wss_url(self) -> str:
        return f"wss://{self._ready['mqtt_wss']}/mqtt"

    @property
    def listeners(self) -> dict[str, str]:
        """`host:port` of all listeners, by their names in the ready file; `mqtt@acme/devices` is
        one of `mqtt.mount_points`.
        """
        return {name: value for name, value in self._ready.items() if name != "pid"}

    @property
    def https_url(self) -> str:
        return f"https://{self._ready['https']}"

    @property
    def pid(self) -> int:
        return int(self._ready["pid"])

    @property
    def data_dir(self) -> Path:
        return self._given_data_dir or self._path("data")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def logs(self) -> str:
        """The server's log over all its starts. After the block only its end is left, for the
        report of a failed test.
        """
        if self._folder is None:
            return self._last_words
        log = self._path("server.log")
        return log.read_text(errors="replace") if log.exists() else ""

    # -- what it does -------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, or start it again after `kill` or `stop`, and wait until it is ready."""
        assert not self.running, "the server is running"
        again = self._ports is not None
        for attempt in range(PORT_ATTEMPTS):
            if self._ports is None:
                self._ports = HeldPorts(self._port_settings())
            try:
                self._spawn(self._ports.numbers)
                self._wait_until_ready()
            except StartError:
                if again or attempt == PORT_ATTEMPTS - 1 or not self._lost_a_port():
                    raise
                self._release_ports()
            else:
                return

    def stop(self) -> None:
        """Stop it normally, with SIGTERM; kill it if that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._forget_process()

    def wait(self) -> int:
        """Wait until it ends; returns its exit code, negative if a signal ended it."""
        assert self._process is not None, "the server is not running"
        code = self._process.wait(STOP_SECONDS)
        self._forget_process()
        return code

    def kill(self) -> None:
        """Kill it at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget_process()

    def restart(self) -> None:
        """Stop it if it runs, then start it on the same ports and data."""
        self.stop()
        self.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP and SIGCONT to simulate a hanging server."""
        assert self._process is not None, "the server is not running"
        self._process.send_signal(number)

    # -- how ----------------------------------------------------------------------------------

    def _path(self, name: str) -> Path:
        assert self._folder is not None, "use magnetar.standalone() in a `with` statement"
        return self._folder.path / name

    def _port_settings(self) -> list[str]:
        """The ports to choose: those that the server opens and the caller did not set."""
        secure = TLS_PORTS if self._tables.get("tls", {}).get("certificate") else ()
        listen = self._tables.get("listen", {})
        asked = [key for key in OPTIONAL_PORTS if listen.get(key, -1) >= 0]
        return [key for key in (*PORTS, *asked, *secure) if not listen.get(key)]

    def _lost_a_port(self) -> bool:
        """Whether the server's last line says that a port chosen by us is in use."""
        last = self.logs().rstrip().rpartition("\n")[2]
        chosen = self._ports.numbers.values() if self._ports is not None else ()
        ours = any(f"port {port} for" in last for port in chosen)
        return ours and "the port is in use" in last

    def _spawn(self, ports: Mapping[str, int]) -> None:
        tables = {section: dict(values) for section, values in self._tables.items()}
        tables.setdefault("listen", {}).update(ports)
        tables["listen"]["ready_file"] = str(self._path("ready.json"))
        tables.setdefault("storage", {})["data_dir"] = str(self.data_dir)
        config = self._path("magnetar.toml")
        config.write_text(write_tables(tables), encoding="utf-8")
        self._path("ready.json").unlink(missing_ok=True)
        # -P: a folder `core` or `wire` in the tests' directory must not be imported as ours
        command = [sys.executable, "-P", "-m", "magnetar", *self._command]
        assert self._folder is not None
        with self._path("server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--config", str(config)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environment(),
                # Ctrl-C must reach the tests only; they stop the server when they end
                start_new_session=True,
                pass_fds=(self._folder.lock,),  # held until the server, too, has ended
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        ready = self._path("ready.json")
        for _ in range(int(START_SECONDS / LOOK_SECONDS)):
            if ready.exists():
                self._ready = json.loads(ready.read_text())
                return
            try:
                code = self._process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            self._forget_process()
            raise StartError(f"the server ended with code {code}; it wrote:\n{self.logs()}")
        self.kill()
        raise StartError(f"not ready within {START_SECONDS:g} s; the server wrote:\n{self.logs()}")

    def _forget_process(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None

    def _release_ports(self) -> None:
        if self._ports is not None:
            self._ports.release()
            self._ports = None

    def _clean_up(self) -> None:
        try:
            self.kill()
        finally:
            self._release_ports()
        if self._folder is not None:
            self._last_words = self.logs()[-LAST_WORDS_MAX:]
            self._folder.remove()
            self._folder = None


def _tables(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Tables of settings by section; settings named by a flag go into its section."""
    by_flag = {_python_name(flag): path for flag, path in FLAGS.items()}
    tables: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        if name in by_flag:
            setting = SETTINGS[by_flag[name]]
            tables.setdefault(setting.section, {})[setting.key] = _plain(value)
        elif isinstance(value, Mapping):
            plain = {key: _plain(item) for key, item in value.items()}
            tables.setdefault(name, {}).update(plain)
        else:
            raise TypeError(f"standalone() has no setting {name!r}")
    return tables


def _python_name(flag: str) -> str:
    return flag.removeprefix("--").removeprefix("no-").replace("-", "_")


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _environment() -> dict[str, str]:
    """The process environment without settings: a test must not depend on who runs it."""
    settings = {setting.variable for setting in SETTINGS.values()} | {"MAGNETAR_CONFIG"}
    return {name: value for name, value in os.environ.items() if name not in settings}


class HeldPorts:
    """Ports for one server, which no other process gets until they are released.

    On Linux a bound socket that does not listen keeps everybody away but a listener that also sets
    SO_REUSEADDR, as ours does. While none listens, clients are refused as at any unused port.
    Elsewhere even such a listener could not bind, so there the ports are only looked for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._sockets: list[socket.socket] = []
        self.numbers: dict[str, int] = {}
        for port in _candidates():
            if len(self.numbers) == len(names):
                break
            if (held := _bind(port)) is None:
                continue
            self.numbers[names[len(self.numbers)]] = port
            if sys.platform == "linux":
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._sockets.append(held)
            else:
                held.close()

    def release(self) -> None:
        for held in self._sockets:
            held.close()
        self._sockets.clear()


def _candidates() -> Iterator[int]:
    """Ports below the ephemeral range, from a random start so that processes differ."""
    ports = range(PORT_FIRST, _ephemeral_first())
    start = int.from_bytes(os.urandom(4), "big") % len(ports)
    return chain(ports[start:], ports[:start])


def _ephemeral_first() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    except OSError:
        return EPHEMERAL_FIRST
    return max(int(text.split()[0]), PORT_FIRST + 1000)


def _bind(port: int) -> socket.socket | None:
    """A socket bound to the port, if nobody has it. SO_REUSEADDR would not notice one who holds it
    without listening, and is not set here.
    """
    probe = socket.socket()
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        probe.close()
        return None
    return probe
