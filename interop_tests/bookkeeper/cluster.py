"""ZooKeeper from Maven's jars, our bookies as processes, and the JVM with Apache's client."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from interop_tests import maven
from interop_tests.bookkeeper import signals
from interop_tests.bookkeeper.bookshell import HERE, LOGGING, OPENED
from interop_tests.driver import Driver

MAGNETAR = str(Path(sys.executable).with_name("magnetar"))
START_SECONDS = 60
ZOOKEEPER = """\
tickTime=500
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=*
"""


def java(folder: Path, *words: str) -> list[str]:
    """How a class of Apache's, or of ours, is run; `words` begin with its name."""
    target = maven.build(HERE)
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING.replace("level = info", "level = warn"))
    opens = [word for name in OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED")]
    return [
        maven.found("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dzookeeper.extendedTypesEnabled=true", f"-Dlog4j2.configurationFile={logging}", *opens,
        "-cp", f"{target}/classes:{target}/jars/*", *words,
    ]  # fmt: skip


def wait_until(ready: Any, process: "subprocess.Popen[bytes]", what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        assert process.poll() is None, f"{what} ended"
        assert time.monotonic() < deadline, f"{what} did not start"


class ZooKeeper:
    """One server; it ends with the `with` block."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self._port}"
        self.uri = f"zk+hierarchical://{self.address}/ledgers"
        configuration = folder / "zoo.cfg"
        configuration.write_text(ZOOKEEPER.format(folder=folder, port=self._port))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with (folder / "zookeeper.log").open("wb") as log:
            self._process = subprocess.Popen(
                java(folder, main, str(configuration)), stdout=log, stderr=log
            )

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5) as one:
                one.sendall(b"ruok")
                return one.recv(4, socket.MSG_WAITALL) == b"imok"
        except OSError:
            return False

    def __enter__(self) -> Self:
        wait_until(self._is_ready, self._process, "ZooKeeper")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Bookie:
    """A bookie of ours, whose id is its address; it is killed with the `with` block."""

    def __init__(self, folder: Path, *more: str) -> None:
        """`more` are options of the command."""
        self.directory = folder
        self._more = more
        self._log = folder / "log"
        self.environment: dict[str, str] = {}
        """Settings besides those of the command line."""
        self.address = ""
        self.listeners: dict[str, str] = {}

    def start(self) -> None:
        ready = self.directory / "ready.json"
        ready.unlink(missing_ok=True)
        port = self.address.rpartition(":")[2] or "0"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    MAGNETAR, "bookie", "--data-dir", str(self.directory / "data"), "--port", port,
                    "--ready-file", str(ready), "--log-level", "warning", *self._more,
                ],
                stderr=log, env={**os.environ, **self.environment},
            )  # fmt: skip
        wait_until(ready.exists, self._process, f"the bookie of {self.directory}")
        self.listeners = json.loads(ready.read_text())
        self.address = self.listeners["bookie"]

    def send_signal(self, how: signal.Signals) -> None:
        signals.send(self._process, how)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(30)

    def log(self) -> str:
        """All that it has logged from the level `warning` on, in all its lives."""
        return self._log.read_text(errors="replace")

    def pause(self, meanwhile: Callable[[], None]) -> None:
        """SIGSTOP: its connections stay open and nothing answers, while something happens."""
        self.send_signal(signal.SIGSTOP)
        try:
            meanwhile()
        finally:
            self.send_signal(signal.SIGCONT)

    def wait(self, seconds: float) -> int:
        """The exit code of one that ends by itself."""
        return self._process.wait(seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Client:
    """Apache's Java client, with the metadata service that it uses."""

    def __init__(self, zookeeper: ZooKeeper, driver: Driver) -> None:
        self.zookeeper = zookeeper
        self.driver = driver

    def play(self, family: str, **args: Any) -> Any:
        return self.driver.play(family, self.zookeeper.uri, "", **args)

    def start(self, family: str, **args: Any) -> Any:
        return self.driver.start(family, self.zookeeper.uri, "", **args)

    def register(self, bookie: Bookie) -> None:
        """Tell clients of a bookie, as long as this process lives."""
        where = self.zookeeper.address
        self.play("cluster.register", bookie=bookie.address, zookeeper=where)


def driver(folder: Path) -> Driver:
    return Driver(java(folder, "magnetar.interop.bookkeeper.Main"), folder / "java.log", os.environ)
