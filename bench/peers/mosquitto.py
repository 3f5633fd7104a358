"""mosquitto, as Debian packages it (`apt-get install mosquitto`).

It keeps messages in memory. With `--no-sync` it runs without persistence; otherwise it has
`persistence true`, its own way of keeping sessions, which writes all of memory every half an hour
and at the end, and syncs nothing before PUBACK. (Started by root it would become another user, who
may not write there.) Window and queue are larger than its defaults (20
and 1,000), which would lose messages of these loads.

Invariant: everything it writes lies in the directory it was given.
"""

import os
import shutil
import socket
import subprocess
from pathlib import Path

from bench.drive import process
from bench.drive.cases import Protocol
from bench.drive.server import NotReadyError, free_port, wait_until_ready

POLL_SECONDS = 0.005
SYSTEM = "/usr/sbin/mosquitto"
"""Debian's place, which is not in everybody's PATH."""


def configuration(directory: Path, port: int, persistent: bool) -> str:
    return "\n".join(
        [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            *(["user root"] if os.geteuid() == 0 else []),
            "max_inflight_messages 1000",
            "max_queued_messages 100000",
            f"persistence {'true' if persistent else 'false'}",
            f"persistence_location {directory}/",
            "",
        ]
    )


class Mosquitto:
    """One broker, which has one thread."""

    metrics_port = None

    def __init__(self, directory: Path, synced: bool, heap: str = "") -> None:
        del heap  # it has none
        self.name = "mosquitto" + (" persistent" if synced else "")
        self.warmup_seconds = 2.0
        self.directory = directory
        self.protocols = frozenset({Protocol.MQTT})
        self.broker_port = free_port()
        self.settings = directory / "mosquitto.conf"
        self.settings.write_text(configuration(directory, self.broker_port, synced))
        self.child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    def port(self, protocol: Protocol) -> int:
        assert protocol in self.protocols
        return self.broker_port

    def prepare(self) -> None:
        if self.program() is None:
            raise NotReadyError("mosquitto is missing (Debian: apt-get install mosquitto)")

    @staticmethod
    def program() -> str | None:
        return shutil.which("mosquitto") or shutil.which(SYSTEM)

    def start(self) -> float:
        program, log = self.program(), self.directory / "server.log"
        assert program is not None
        with log.open("ab") as out:
            self.child = subprocess.Popen([program, "-c", self.settings], stdout=out, stderr=out)
        return wait_until_ready(self.child, self.is_listening, log, POLL_SECONDS)

    def is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.broker_port), timeout=5).close()
        except OSError:
            return False
        return True

    def renew(self) -> None:
        """Begin anew: what a load has left in its queues would slow down the next."""
        self.stop()
        self.start()

    def stop(self) -> None:
        if self.child is not None:
            process.stop(self.child)
            self.child = None

    def close(self) -> None:
        """Nothing runs beside it."""
