"""Apache Pulsar 4.2.4 standalone, from Maven Central, with a configuration of our own.

Two heap settings, because each is better somewhere: Z is what the distribution ships (2 GB heap,
ZGC), S a small serial heap. The distribution's own file has journalSyncData=false; ours says which
on each start.
Invariant: everything it writes lies in the directory it was given.
"""

import urllib.error
import urllib.request
from pathlib import Path

from bench.drive.cases import Protocol
from bench.drive.server import free_port
from bench.peers import jvm

VERSION = "4.2.4"
WARMUP_SECONDS = 60.0
POLL_SECONDS = 0.02
BOOKKEEPER = "org.apache.pulsar.metadata.bookkeeper"

HEAPS = {
    "Z": ["-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=4g", "-XX:+UseZGC"],
    "S": ["-Xms64m", "-Xmx256m", "-XX:MaxDirectMemorySize=512m", "-XX:+UseSerialGC"],
}
OPENED = [
    "java.base/java.io",
    "java.base/java.util.zip",
    "java.base/java.nio",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
]


def configuration(port: int, http_port: int, synced: bool, transactions: bool) -> str:
    """The lines of broker.conf that differ from the defaults in the code."""
    return "\n".join(
        [
            f"brokerServicePort={port}",
            f"webServicePort={http_port}",
            "bindAddress=127.0.0.1",
            "advertisedAddress=127.0.0.1",
            "clusterName=standalone",
            "managedLedgerDefaultEnsembleSize=1",
            "managedLedgerDefaultWriteQuorum=1",
            "managedLedgerDefaultAckQuorum=1",
            "loadManagerClassName=org.apache.pulsar.broker.loadbalance.NoopLoadManager",
            "loadBalancerEnabled=false",
            "ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            f"journalSyncData={'true' if synced else 'false'}",
            "journalMaxGroupWaitMSec=1",
            "allowLoopback=true",
            "diskUsageThreshold=0.99",
            "diskUsageWarnThreshold=0.98",
            "brokerDeleteInactiveTopicsEnabled=false",
            f"transactionCoordinatorEnabled={'true' if transactions else 'false'}",
            "",
        ]
    )


def flags(conf: Path, heap: str) -> list[str]:
    opened = [part for name in OPENED for part in ("--add-opens", f"{name}=ALL-UNNAMED")]
    return [
        *HEAPS[heap],
        *opened,
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dpulsar.config.file={conf}",
        f"-Dbookkeeper.metadata.bookie.drivers={BOOKKEEPER}.PulsarMetadataBookieDriver",
        f"-Dbookkeeper.metadata.client.drivers={BOOKKEEPER}.PulsarMetadataClientDriver",
    ]


class Pulsar:
    """One standalone server: broker, bookie and metadata store in a single JVM."""

    metrics_port = None

    def __init__(
        self, directory: Path, synced: bool, heap: str = "Z", *, transactions: bool = False
    ) -> None:
        """`transactions` are off in its own configuration, and cost every message something."""
        self.name = f"pulsar {heap}" + ("" if synced else " not synced")
        self.warmup_seconds = WARMUP_SECONDS
        self.directory = directory
        self.heap = heap
        self.protocols = frozenset({Protocol.PULSAR})
        self.broker_port = free_port()
        self.http_port = free_port()
        self.jvm = jvm.Jvm(directory)
        self.conf = directory / "broker.conf"
        told = configuration(self.broker_port, self.http_port, synced, transactions)
        self.conf.write_text(told)

    @property
    def pid(self) -> int:
        return self.jvm.pid

    def port(self, protocol: Protocol) -> int:
        assert protocol in self.protocols
        return self.broker_port

    def prepare(self) -> None:
        jvm.fetch("pulsar", VERSION, "pulsar-broker")

    def start(self) -> float:
        """Start and wait until the broker's own health path answers that it is ready."""
        told = ["--config", str(self.conf), "-nfw", "-nss", "-a", "127.0.0.1"]
        told += ["--num-bookies", "1", "--metadata-dir", str(self.directory / "metadata")]
        told += ["--bookkeeper-dir", str(self.directory / "bookkeeper")]
        main = "org.apache.pulsar.PulsarStandaloneStarter"
        command = self.jvm.command(flags(self.conf, self.heap), f"pulsar-{VERSION}", main, *told)
        return self.jvm.start(command, self.is_ready, POLL_SECONDS)

    def is_ready(self) -> bool:
        """Ready: the namespace that clients use by default is there and answered for."""
        url = f"http://127.0.0.1:{self.http_port}/admin/v2/namespaces/public/default"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def renew(self) -> None:
        """Nothing: what was compiled so far would be lost, and it counts no pauses."""

    def stop(self) -> None:
        self.jvm.stop()

    def close(self) -> None:
        """Nothing runs beside it."""
