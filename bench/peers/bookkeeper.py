"""Apache BookKeeper 4.18's bookie, and the ZooKeeper that it needs, from Maven Central.

A bookie syncs its journal before it answers, as it does by default; heap and collector are those of
its distribution's scripts (1 GB, G1) or small.
Invariant: everything they write lies in the directory they were given.
"""

import socket
from pathlib import Path
from typing import Final

from bench.drive.server import free_port
from bench.peers import jvm
from bench.peers.pulsar import OPENED

VERSION = "4.18.0"
POLL_SECONDS = 0.005
STARTED: Final = "Started component {component=bookie-server}"
"""The port is open before the journal is replayed."""
HEAPS = {
    "Z": ["-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", "-XX:+UseG1GC"],
    "S": ["-Xms64m", "-Xmx128m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC"],
}


def _command(process: jvm.Jvm, heap: list[str], *main: str) -> list[str]:
    opened = [part for name in OPENED for part in ("--add-opens", f"{name}=ALL-UNNAMED")]
    return process.command([*heap, *opened], f"bookkeeper-{VERSION}", *main)


def prepare() -> None:
    """Fetch both."""
    jvm.fetch("bookkeeper", VERSION, "bookkeeper-server")


class ZooKeeper:
    """One server, which keeps the metadata of a cluster."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.uri = f"zk+hierarchical://127.0.0.1:{self.port}/ledgers"
        self._jvm = jvm.Jvm(directory)
        self._configuration = directory / "zoo.cfg"
        self._configuration.write_text(
            f"tickTime=500\ndataDir={directory / 'data'}\nclientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
        )

    def start(self) -> None:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = _command(self._jvm, HEAPS["S"], main, str(self._configuration))
        self._jvm.start(command, self._answers, POLL_SECONDS)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as asked:
                asked.sendall(b"ruok")
                return asked.recv(4, socket.MSG_WAITALL) == b"imok"
        except OSError:
            return False

    def stop(self) -> None:
        self._jvm.stop()


class ApacheBookie:
    """One bookie of a cluster that has been initialized."""

    name = "Apache's bookie"

    def __init__(self, directory: Path, metadata_uri: str, heap: str = "Z") -> None:
        self._port = free_port()
        self.address = ("127.0.0.1", self._port)
        self._heap = heap
        self._jvm = jvm.Jvm(directory)
        self._log = directory / "server.log"
        # Started components are told at the level `info`, with their names as attributes (%X).
        logging = jvm.LOGGING.format(directory=directory).replace("level=warn", "level=info")
        (directory / "log4j2.properties").write_text(logging)
        self._configuration = directory / "bk_server.conf"
        self._configuration.write_text(configuration(directory, self._port, metadata_uri))

    @property
    def pid(self) -> int:
        return self._jvm.pid

    def start(self) -> float:
        main = "org.apache.bookkeeper.server.Main"
        told = [main, "--conf", str(self._configuration)]
        command = _command(self._jvm, HEAPS[self._heap], *told)
        return self._jvm.start(command, self._is_ready, POLL_SECONDS)

    def _is_ready(self) -> bool:
        return self._log.exists() and STARTED in self._log.read_text(errors="replace")

    def stop(self) -> None:
        self._jvm.stop()


def configuration(directory: Path, port: int, metadata_uri: str) -> str:
    """The lines of bk_server.conf without which it does not run here."""
    return "\n".join(
        [
            f"bookiePort={port}",
            "advertisedAddress=127.0.0.1",
            "allowLoopback=true",
            f"metadataServiceUri={metadata_uri}",
            f"journalDirectories={directory / 'journal'}",
            f"ledgerDirectories={directory / 'ledgers'}",
            "ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            "journalMaxBackups=0",
            "diskUsageThreshold=0.99",
            "diskUsageWarnThreshold=0.98",
            "",
        ]
    )
