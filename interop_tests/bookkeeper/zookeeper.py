"""Real ZooKeeper servers, from the jars of Apache BookKeeper's shell: one, or several together.

It ticks ten times as fast as a default one, so that sessions of one second are allowed. A test may
stop it, kill it, and start it again on the same port with what it had stored.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from interop_tests import maven
from interop_tests.bookkeeper import signals

HERE = Path(__file__).parent
START_SECONDS = 60
CONFIGURATION = """\
tickTime=200
minSessionTimeout={session_ms_min}
maxSessionTimeout=60000
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
forceSync=no
"""
LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m %throwable%n
"""


class ZooKeeper:
    """One server; `address` is what clients connect to."""

    def __init__(
        self,
        directory: Path,
        number: int = 0,
        peers: Sequence[str] = (),
        session_seconds_min: float = 0.4,
    ) -> None:
        """`peers` are the lines of all servers of an ensemble, of which this is one. No session is
        shorter than the last one.
        """
        (directory / "data").mkdir(parents=True, exist_ok=True)
        if peers:
            (directory / "data/myid").write_text(str(number))
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._peers = peers
        self._session_ms_min = int(1000 * session_seconds_min)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        """Start it, and wait until it answers."""
        configuration = self._directory / "zoo.cfg"
        configuration.write_text(
            CONFIGURATION.format(
                directory=self._directory / "data",
                port=self.port,
                session_ms_min=self._session_ms_min,
            )
            + "".join(self._peers)
        )
        (self._directory / "log4j2.properties").write_text(LOGGING)
        jars = maven.build(HERE) / "jars"
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    maven.found("java"), "-Xmx128m", "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                    f"-Dlog4j2.configurationFile={self._directory / 'log4j2.properties'}",
                    "-cp", f"{jars}{os.sep}*",
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration),
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it answers; in an ensemble, until there is a leader."""
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _answers(self) -> bool:
        return "Mode: " in self._command(b"srvr")

    def is_leader(self) -> bool:
        return "Mode: leader" in self._command(b"srvr")

    def _command(self, word: bytes) -> str:
        """The answer to one of ZooKeeper's four letter words; nothing if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as asked:
                asked.sendall(word)
                with asked.makefile() as answer:
                    return answer.read()
        except OSError:
            return ""

    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        """`kill -9`, and wait for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open and nothing answers, once this has returned."""
        assert self._process is not None
        signals.send(self._process, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self.thaw()
            self.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def ensemble(directory: Path, count: int = 3) -> Iterator[list[ZooKeeper]]:
    """Servers that agree by majority."""
    peers = [f"server.{i}=127.0.0.1:{free_port()}:{free_port()}\n" for i in range(1, count + 1)] + [
        "initLimit=50\nsyncLimit=20\n"
    ]
    servers = [ZooKeeper(directory / str(i), i, peers) for i in range(1, count + 1)]
    try:
        for server in servers:
            server.start(wait=False)
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.stop()


@contextmanager
def running(directory: Path, session_seconds_min: float = 0.4) -> Iterator[ZooKeeper]:
    """A server that has been started, and ends with the block."""
    server = ZooKeeper(directory, session_seconds_min=session_seconds_min)
    server.start()
    try:
        yield server
    finally:
        server.stop()
