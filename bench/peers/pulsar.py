"""Apache Pulsar 4.2.4 standalone, from Maven Central, with a configuration of our own.

Two heap settings, because each is better somewhere: Z is what the distribution ships (2 GB heap,
ZGC), S a small serial heap. The distribution's own file has journalSyncData=false; ours says which
on each start.
Invariant: everything it writes lies in the directory it was given.
"""

import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from bench.drive import process
from bench.drive.server import NotReadyError, wait_until_ready

VERSION = "4.2.4"
HERE = Path(__file__).resolve().parent
JARS = HERE.parent / "out" / "peers" / f"pulsar-{VERSION}"
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

LOGGING = """\
status=error
appender.file.type=File
appender.file.name=file
appender.file.fileName={directory}/server.log
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{{ISO8601}} %-5level %logger{{1}} - %msg %X%n
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
"""


def configuration(port: int, http_port: int, synced: bool) -> str:
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
            "",
        ]
    )


def java_command(directory: Path, heap: str, java: str = "java") -> list[str]:
    conf = directory / "broker.conf"
    command = [java, *HEAPS[heap]]
    for package in OPENED:
        command += ["--add-opens", f"{package}=ALL-UNNAMED"]
    command += [
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dpulsar.config.file={conf}",
        f"-Dbookkeeper.metadata.bookie.drivers={BOOKKEEPER}.PulsarMetadataBookieDriver",
        f"-Dbookkeeper.metadata.client.drivers={BOOKKEEPER}.PulsarMetadataClientDriver",
        f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        "-cp",
        f"{JARS}/*",
        "org.apache.pulsar.PulsarStandaloneStarter",
    ]
    command += ["--config", str(conf), "-nfw", "-nss", "-a", "127.0.0.1", "--num-bookies", "1"]
    command += ["--metadata-dir", str(directory / "metadata")]
    return [*command, "--bookkeeper-dir", str(directory / "bookkeeper")]


def fetch_jars() -> None:
    """Let Maven copy the server's jars once; afterwards no network is needed."""
    if JARS.is_dir() and any(JARS.glob("pulsar-broker-*.jar")):
        return
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise NotReadyError(
            "Apache Pulsar needs a JDK (17 or newer) and Maven: `mvn` or `java` is missing"
        )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
    pom = str(HERE / "pulsar.pom.xml")
    subprocess.run(["mvn", "-q", "-B", "-f", pom, *goal], check=True)


def free_port() -> int:
    """A port that was free a moment ago; this server cannot choose its own and tell."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Pulsar:
    """One standalone server: broker, bookie and metadata store in a single JVM."""

    def __init__(self, directory: Path, synced: bool, heap: str = "Z") -> None:
        self.name = f"pulsar {heap}" + ("" if synced else " not synced")
        self.warmup_seconds = WARMUP_SECONDS
        self.directory = directory
        self.heap = heap
        self.port = free_port()
        self.http_port = free_port()
        self.child: subprocess.Popen[bytes] | None = None
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        (directory / "broker.conf").write_text(configuration(self.port, self.http_port, synced))
        (directory / "log4j2.properties").write_text(LOGGING.format(directory=directory))

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    def start(self) -> float:
        """Start and wait until the broker's own health path answers that it is ready."""
        fetch_jars()
        console = self.directory / "console.log"
        with console.open("ab") as out:
            command = java_command(self.directory, self.heap)
            self.child = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.directory)
        return wait_until_ready(self.child, self.is_ready, console, POLL_SECONDS)

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
        if self.child is not None:
            process.stop(self.child)
            self.child = None
