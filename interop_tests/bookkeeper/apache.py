"""Apache BookKeeper 4.18 on a real ZooKeeper: its bookie, and its shell for a whole cluster."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop_tests import maven
from interop_tests.bookkeeper import bookshell, signals
from interop_tests.bookkeeper.bookshell import HERE, LOGGING, OPENED
from interop_tests.bookkeeper.zookeeper import free_port

START_SECONDS = 60
STARTED = "Started component {component=bookie-server}"
CONFIGURATION = f"""{bookshell.CONFIGURATION}\
zkTimeout=2000
journalPreAllocSizeMB=1
journalMaxBackups=0
"""


class ApacheBookie:
    """One bookie of Apache's, and the shell that reads its configuration."""

    def __init__(
        self, uri: str, directory: Path, port: int = 0, more: str = "", jaas: str = ""
    ) -> None:
        """With the port of a bookie of ours it is for the shell only, which asks that bookie.
        `more` is added to its configuration, and to that of the stock client; `jaas` is what
        Java's SASL reads.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.bookie_id = f"127.0.0.1:{self.port}"
        self.directory = directory
        self._uri = uri
        self._configuration = directory / "bk_server.conf"
        self._configuration.write_text(
            CONFIGURATION.format(port=self.port, uri=uri, directory=directory) + more
        )
        self._client_configuration = directory / "client.conf"
        self._client_configuration.write_text(more)
        self._jaas = directory / "jaas.conf"
        self._jaas.write_text(jaas)
        self._logging = directory / "log4j2.properties"
        self._logging.write_text(LOGGING)
        self._log = directory / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, heap: str, *words: str) -> list[str]:
        opens = [word for name in OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED")]
        target = maven.build(HERE)
        return [
            maven.found("java"), heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-XX:MaxDirectMemorySize=256m", f"-Dlog4j2.configurationFile={self._logging}",
            f"-Djava.security.auth.login.config={self._jaas}",
            f"-Dconfiguration={self._client_configuration}", *opens,
            "-cp", f"{target}/classes:{target}/jars/*", *words,
        ]  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it serves."""
        begin = self._log.stat().st_size if self._log.exists() else 0
        process = self._run_main("org.apache.bookkeeper.server.Main")
        deadline = time.monotonic() + START_SECONDS
        while STARTED not in self.log()[begin:]:
            assert process.poll() is None, self.log()[begin:]
            assert time.monotonic() < deadline, self.log()[begin:]
            time.sleep(0.05)

    def start_recovery(self) -> None:
        """Start Apache's AutoRecovery instead, auditor and replication worker, and do not wait."""
        self._run_main("org.apache.bookkeeper.replication.AutoRecoveryMain")

    def _run_main(self, main: str) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            command = self._java("-Xmx256m", main, "--conf", str(self._configuration))
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        return self._process

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def send_signal(self, how: signal.Signals) -> None:
        assert self._process is not None
        signals.send(self._process, how)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def shell(self, *command: str, succeeds: bool = True) -> str:
        """What BookKeeper's shell says; it must end as `succeeds` says."""
        shell = "org.apache.bookkeeper.bookie.BookieShell"
        return self._run(shell, "-conf", str(self._configuration), *command, succeeds=succeeds)

    def bkctl(self, *command: str, succeeds: bool = True, seconds: float = 90) -> str:
        """What Apache's newer command line says (`BkCtl.java`)."""
        words = (str(HERE / "BkCtl.java"), str(self._configuration), *command)
        return self._run(*words, succeeds=succeeds, seconds=seconds)

    def client(self, *command: str, succeeds: bool = True) -> str:
        """What the stock client says (`StockClient.java`)."""
        return self._run(str(HERE / "StockClient.java"), self._uri, *command, succeeds=succeeds)

    def _run(self, *words: str, succeeds: bool, seconds: float = 90) -> str:
        done = subprocess.run(
            self._java("-Xmx128m", *words), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=seconds, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert (done.returncode == 0) is succeeds, said
        return said


@contextmanager
def running_bookie(
    uri: str, directory: Path, more: str = "", jaas: str = ""
) -> Iterator[ApacheBookie]:
    """A bookie that has been started, and ends with the block."""
    with _ending(ApacheBookie(uri, directory, more=more, jaas=jaas)) as bookie:
        bookie.start()
        yield bookie


@contextmanager
def running_recovery(uri: str, directory: Path) -> Iterator[ApacheBookie]:
    """An AutoRecovery likewise; its configuration names a bookie that never runs."""
    with _ending(ApacheBookie(uri, directory)) as recovery:
        recovery.start_recovery()
        yield recovery


@contextmanager
def _ending(process: ApacheBookie) -> Iterator[ApacheBookie]:
    try:
        yield process
    finally:
        process.stop(signal.SIGKILL)
