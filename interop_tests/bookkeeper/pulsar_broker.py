"""Apache Pulsar 4.2: a broker whose storage is a BookKeeper cluster, and its pulsar-perf.

Apache's own set-up makes the cluster's metadata, BookKeeper's included, so that what our bookies
join is what users of Pulsar have.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from interop_tests import maven
from interop_tests.bookkeeper.bookshell import OPENED
from interop_tests.bookkeeper.zookeeper import LOGGING, free_port

PROJECT: Final = Path(__file__).with_name("pulsar")
START_SECONDS: Final = 120
STOP_SECONDS: Final = 60
BOOKKEEPER: Final = "org.apache.pulsar.metadata.bookkeeper"
MANAGED: Final = ("java.management/sun.management", "jdk.management/com.sun.management.internal")
CONFIGURATION: Final = """\
clusterName=c
metadataStoreUrl=zk:{zookeeper}
configurationMetadataStoreUrl=zk:{zookeeper}
brokerServicePort={port}
webServicePort={http_port}
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
managedLedgerDefaultEnsembleSize=2
managedLedgerDefaultWriteQuorum=2
managedLedgerDefaultAckQuorum=2
managedLedgerMaxEntriesPerLedger=1000
managedLedgerMinLedgerRolloverTimeMinutes=0
managedLedgerCacheSizeMB=16
loadBalancerEnabled=false
defaultNumberOfNamespaceBundles=1
brokerDeleteInactiveTopicsEnabled=false
"""


class PulsarBroker:
    """One broker, and what the admin API of it answers; it is killed with the `with` block."""

    def __init__(self, zookeeper: str, directory: Path, *more: str) -> None:
        """`more` are lines of its configuration."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._zookeeper = zookeeper
        port, self._http_port = free_port(), free_port()
        self.url = f"pulsar://127.0.0.1:{port}"
        self._configuration = directory / "broker.conf"
        text = CONFIGURATION.format(zookeeper=zookeeper, port=port, http_port=self._http_port)
        self._configuration.write_text(text + "\n".join(more))
        (directory / "warn.properties").write_text(LOGGING)
        (directory / "info.properties").write_text(LOGGING.replace("level = warn", "level = info"))
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, heap: str, *words: str, level: str = "warn") -> list[str]:
        opens = [
            word for name in (*OPENED, *MANAGED) for word in ("--add-opens", f"{name}=ALL-UNNAMED")
        ]
        jars = maven.build(PROJECT) / "jars"
        return [
            maven.found("java"), f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-XX:MaxDirectMemorySize=256m", "-Dio.netty.tryReflectionSetAccessible=true",
            f"-Dlog4j2.configurationFile={self._directory / level}.properties",
            f"-Dpulsar.config.file={self._configuration}",
            f"-Dbookkeeper.metadata.bookie.drivers={BOOKKEEPER}.PulsarMetadataBookieDriver",
            f"-Dbookkeeper.metadata.client.drivers={BOOKKEEPER}.PulsarMetadataClientDriver",
            *opens, "-cp", f"{jars}{os.sep}*", *words,
        ]  # fmt: skip

    def set_up(self) -> None:
        """`bin/pulsar initialize-cluster-metadata`."""
        done = subprocess.run(
            self._java(
                "128m", "org.apache.pulsar.PulsarClusterMetadataSetup", "--cluster", "c",
                "--metadata-store", f"zk:{self._zookeeper}",
                "--configuration-metadata-store", f"zk:{self._zookeeper}",
                "--web-service-url", f"http://127.0.0.1:{self._http_port}",
                "--broker-service-url", self.url,
            ),
            capture_output=True, text=True, timeout=START_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start it and wait until it answers for the default namespace."""
        main = ("org.apache.pulsar.PulsarBrokerStarter", "-c", str(self._configuration))
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._java("256m", *main), stdout=log, stderr=log, cwd=self._directory
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            self.admin("GET", "brokers/health")
        except OSError:
            return False
        return True

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """What `/admin/v2/PATH` answers; `urllib.error.HTTPError` if it refuses."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._http_port}/admin/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    @contextmanager
    def perf(self, *words: str) -> Iterator[Path]:
        """pulsar-perf, which runs beside the block; the file with what it says."""
        main = "org.apache.pulsar.testclient.PulsarPerfTestTool"
        command = (main, str(self._configuration), *words, "--service-url", self.url)
        told = self._directory / "perf.log"
        with told.open("wb") as log, subprocess.Popen(
            self._java("1g", *command, level="info"),
            stdout=log, stderr=log, cwd=self._directory,
        ) as process:  # fmt: skip
            try:
                yield told
            finally:
                process.terminate()

    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(STOP_SECONDS)
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
