"""What the driver needs of a server, and how ours is started.

A `Server` is stopped or running; `start` returns once it says that it is ready. Its data stays in
`directory` over a restart and is removed by whoever made the directory, not here.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol as Interface

from bench.drive import process
from bench.drive.cases import Protocol
from magnetar.child import FREE_PORTS

READY_SECONDS = 120.0
POLL_SECONDS = 0.001
Child = subprocess.Popen[bytes]


class NotReadyError(Exception):
    """The server ended, or said nothing for too long, before it was ready."""


class Server(Interface):
    """A server on this machine: one process, one data directory."""

    name: str
    warmup_seconds: float
    protocols: frozenset[Protocol]

    @property
    def pid(self) -> int: ...

    @property
    def metrics_port(self) -> int | None:
        """The address of its pause metrics, if it has them."""

    @property
    def directory(self) -> Path: ...

    def port(self, protocol: Protocol) -> int:
        """Where it speaks one of its protocols."""

    def prepare(self) -> None:
        """Called once before the first start, for work that no start should be charged with."""

    def start(self) -> float:
        """Start and wait until ready; return how many seconds that took."""

    def renew(self) -> None:
        """Before each load: begin anew, where that is cheap."""

    def stop(self) -> None: ...

    def close(self) -> None:
        """End what `prepare` began."""


def last_words(log: Path) -> str:
    """The end of a log: its directory is removed when the run ends."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def wait_until_ready(child: Child, is_ready: Callable[[], bool], log: Path, poll: float) -> float:
    """Ask until it is ready, as long as the process lives; return the seconds since the call."""
    begun = time.monotonic()
    while not is_ready():
        if child.poll() is not None:
            raise NotReadyError(f"the server ended with {child.returncode}: {last_words(log)}")
        if time.monotonic() - begun > READY_SECONDS:
            raise NotReadyError(f"not ready after {READY_SECONDS:g} s: {last_words(log)}")
        process.pause(poll)
    return time.monotonic() - begun


def free_port() -> int:
    """A port that was free a moment ago, for a server that cannot choose its own and tell."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Magnetar:
    """Our own server, from this checkout, on ports that it chooses itself."""

    def __init__(self, directory: Path, synced: bool) -> None:
        self.name = "magnetar" if synced else "magnetar --no-sync"
        self.warmup_seconds = 2.0
        self.protocols = frozenset(Protocol)
        self.directory = directory
        self.synced = synced
        self.starts = 0
        self.child: subprocess.Popen[bytes] | None = None
        self.addresses: dict[str, str] = {}

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    @property
    def metrics_port(self) -> int:
        return self.port_of("http")

    def port(self, protocol: Protocol) -> int:
        return self.port_of(protocol.value)

    def port_of(self, listener: str) -> int:
        return int(self.addresses[listener].rpartition(":")[2])

    def prepare(self) -> None:
        """Nothing: it is here."""

    def start(self) -> float:
        self.starts += 1
        ready = self.directory / f"ready-{self.starts}.json"
        log = self.directory / "server.log"
        command = [str(Path(sys.executable).with_name("magnetar")), *self.words()]
        command += ["--ready-file", str(ready), *FREE_PORTS]
        with log.open("ab") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out)
        took = wait_until_ready(self.child, ready.exists, log, POLL_SECONDS)
        self.addresses = json.loads(ready.read_text())
        return took

    def words(self) -> list[str]:
        """The command without the ready file and the ports."""
        told = ["standalone", "--data-dir", str(self.directory / "data")]
        return told if self.synced else [*told, "--no-sync"]

    def renew(self) -> None:
        """A new process without data: its longest pause is this case's alone."""
        self.stop()
        shutil.rmtree(self.directory / "data")
        self.start()

    def stop(self) -> None:
        if self.child is not None:
            process.stop(self.child)
            self.child = None

    def close(self) -> None:
        """Nothing runs beside it."""
