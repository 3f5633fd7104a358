"""Apache Kafka 4.3.1, one node that is broker and controller, from Maven Central.

Kafka itself leaves syncing to the operating system; synced means here that every topic has
`flush.messages=1`, its own way of storing a message before it is acknowledged.
Invariant: everything it writes lies in the directory it was given.
"""

import socket
import subprocess
from pathlib import Path

from bench.drive.cases import Protocol
from bench.drive.server import free_port
from bench.peers import jvm

VERSION = "4.3.1"
WARMUP_SECONDS = 45.0
POLL_SECONDS = 0.005
CLUSTER_ID = "bWFnbmV0YXItYmVuY2gtMQ"

HEAPS = {
    "Z": ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"],
    "S": ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC"],
}
"""What its own scripts give it, and a small one."""


def configuration(directory: Path, port: int, controller_port: int, synced: bool) -> str:
    """The lines of server.properties that a single node needs, and the sync of every batch."""
    return "\n".join(
        [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
            "controller.listener.names=CONTROLLER",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"log.dirs={directory / 'data'}",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            "log.segment.delete.delay.ms=1000",
            *(["log.flush.interval.messages=1"] if synced else []),
            "",
        ]
    )


class Kafka:
    """One node: broker and controller in a single JVM."""

    metrics_port = None

    def __init__(self, directory: Path, synced: bool, heap: str = "Z") -> None:
        self.name = f"kafka {heap}" + ("" if synced else " not synced")
        self.warmup_seconds = WARMUP_SECONDS
        self.directory = directory
        self.protocols = frozenset({Protocol.KAFKA})
        self.heap = heap
        self.broker_port = free_port()
        self.jvm = jvm.Jvm(directory)
        told = configuration(directory, self.broker_port, free_port(), synced)
        self.properties = directory / "server.properties"
        self.properties.write_text(told)

    @property
    def pid(self) -> int:
        return self.jvm.pid

    def port(self, protocol: Protocol) -> int:
        assert protocol in self.protocols
        return self.broker_port

    def command(self, main: str, *arguments: str) -> list[str]:
        return self.jvm.command(HEAPS[self.heap], f"kafka-{VERSION}", main, *arguments)

    def prepare(self) -> None:
        """Fetch it, and format the directory, which a first start needs."""
        jvm.fetch("kafka", VERSION, "kafka_2.13")
        told = ["format", "-t", CLUSTER_ID, "-c", str(self.properties)]
        subprocess.run(
            self.command("kafka.tools.StorageTool", *told),
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
        )

    def start(self) -> float:
        """Start and wait until the port is open; the first clients may still have to wait."""
        told = self.command("kafka.Kafka", str(self.properties))
        return self.jvm.start(told, self.is_listening, POLL_SECONDS)

    def is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.broker_port), timeout=5).close()
        except OSError:
            return False
        return True

    def renew(self) -> None:
        """Nothing: what was compiled so far would be lost; topics are removed after each load."""

    def stop(self) -> None:
        self.jvm.stop()

    def close(self) -> None:
        """Nothing runs beside it."""
