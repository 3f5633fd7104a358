"""The load as a process: Pulsar's Java client with `Load.java`, which Java compiles as it starts.

The client is the one among the jars of Apache's broker, the same for every server. It lives as long
as its server, so that what the JVM has compiled stays.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.drive import process
from bench.peers import jvm
from bench.peers.pulsar import VERSION

PROGRAM = Path(__file__).with_name("Load.java")
FLAGS = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC")


class Shape(NamedTuple):
    """What the transactions are made of."""

    open: int
    """How many are open at once."""
    messages: int
    """Published in each, and as many acknowledged."""
    size: int
    batched: bool
    """Whether what is published in one goes out in batches."""


class Round(msgspec.Struct, frozen=True):
    """Transactions of one round."""

    per_second: float
    cpu_ms: float
    """Of the server, a transaction."""
    client_ms: float
    p50_ms: float
    """Of commits."""
    p99_ms: float


class LoadFailedError(Exception):
    """The client ended."""


class TransactionLoad:
    """The client of one server."""

    def __init__(self, port: int, server_pid: int, shape: Shape, directory: Path) -> None:
        self._server_pid, self._shape = server_pid, shape
        jars = jvm.fetch("pulsar", VERSION, "pulsar-broker")
        logging = directory / "log4j2.properties"
        logging.write_text(jvm.LOGGING.format(directory=directory))
        command = ["java", *FLAGS, f"-Dlog4j2.configurationFile={logging}", "-cp", f"{jars}/*"]
        command += [str(PROGRAM), f"pulsar://127.0.0.1:{port}", str(shape.open)]
        command += [str(shape.messages), str(shape.size), str(shape.batched).lower()]
        self._errors = directory / "load.log"
        with self._errors.open("wb") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self._hear("ready")

    def _hear(self, word: str) -> list[str]:
        """The rest of the line that begins so; what else is printed is none of ours."""
        assert self._child.stdout is not None
        for line in self._child.stdout:
            words = line.decode().split()
            if words[:2] == [">", word]:
                return words[2:]
        raise LoadFailedError(self._errors.read_text()[-2000:])

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n".encode())
        self._child.stdin.flush()

    def round(self, transactions: int) -> Round:
        """Publish what will be acknowledged; then carry out the transactions."""
        self._tell(f"fill {transactions * self._shape.messages}")
        self._hear("filled")
        self._tell(f"run {transactions}")
        self._hear("begun")
        pids = self._server_pid, self._child.pid
        before = [process.cpu_seconds(pid) for pid in pids]
        seconds, p50_ms, p99_ms = map(float, self._hear("done"))
        spent = [process.cpu_seconds(pid) - then for pid, then in zip(pids, before, strict=True)]
        server_ms, client_ms = (1000 * each / transactions for each in spent)
        return Round(transactions / seconds, server_ms, client_ms, p50_ms, p99_ms)

    def stop(self) -> None:
        process.stop(self._child)
