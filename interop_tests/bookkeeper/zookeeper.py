"""A real ZooKeeper server of one node, from the jars of Apache BookKeeper's shell.

It ticks ten times as fast as a default one, so that sessions of one second are allowed. A test may
stop it, kill it, and start it again on the same port with what it had stored.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop_tests import maven

HERE = Path(__file__).parent
START_SECONDS = 60
CONFIGURATION = """\
tickTime=200
minSessionTimeout=400
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

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        configuration = self._directory / "zoo.cfg"
        configuration.write_text(
            CONFIGURATION.format(directory=self._directory / "data", port=self.port)
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
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as asked:
                asked.sendall(b"ruok")
                return asked.recv(4) == b"imok"
        except OSError:
            return False

    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        """`kill -9`, and wait for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self.thaw()
            self.kill()


@contextmanager
def running(directory: Path) -> Iterator[ZooKeeper]:
    """A server that has been started, and ends with the block."""
    server = ZooKeeper(directory)
    server.start()
    try:
        yield server
    finally:
        server.stop()
