"""Bookies for measurements: ours as a process, alone or in a cluster of Apache's ZooKeeper."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from bench.drive import process
from bench.drive.server import POLL_SECONDS, wait_until_ready
from bench.peers import bookkeeper
from bench.peers.bookkeeper import ZooKeeper

MAGNETAR = str(Path(sys.executable).with_name("magnetar"))


class Bookie(Protocol):
    """A bookie as a process; `start` returns the seconds until it was ready."""

    name: str

    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> float: ...

    def stop(self) -> None: ...


class OurBookie:
    """`magnetar bookie` of this checkout; without a URI it belongs to no cluster."""

    name = "magnetar"

    def __init__(self, directory: Path, metadata_uri: str = "") -> None:
        self._directory = directory
        cluster = ("--metadata-uri", metadata_uri) if metadata_uri else ("--bookie-id", "bench")
        self._options = (*cluster, "--log-level", "warning", "--port", "0")
        self._child: subprocess.Popen[bytes] | None = None
        self.address = ("", 0)

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def start(self) -> float:
        ready, log = self._directory / "ready.json", self._directory / "log"
        command = [MAGNETAR, "bookie", "--data-dir", str(self._directory / "data"), *self._options]
        with log.open("ab") as out:
            self._child = subprocess.Popen(
                [*command, "--ready-file", str(ready)], stdout=out, stderr=out
            )
        took = wait_until_ready(self._child, ready.exists, log, POLL_SECONDS)
        host, _, port = json.loads(ready.read_text())["bookie"].rpartition(":")
        self.address = (host, int(port))
        return took

    def stop(self) -> None:
        if self._child is not None:
            process.stop(self._child)
            self._child = None


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """A ZooKeeper with the metadata of a cluster that has just been initialized; its URI."""
    bookkeeper.prepare()
    directory.mkdir()
    zookeeper = ZooKeeper(directory)
    zookeeper.start()
    try:
        command = [MAGNETAR, "bookie", "init-cluster", "--metadata-uri", zookeeper.uri]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield zookeeper.uri
    finally:
        zookeeper.stop()


def started(
    directory: Path, count: int, make: Callable[[Path], Bookie], running: ExitStack
) -> tuple[list[Bookie], list[float]]:
    """So many bookies, which stop with `running`, and the seconds that each took to start."""
    bookies: list[Bookie] = []
    seconds: list[float] = []
    for number in range(count):
        place = directory / str(number)
        place.mkdir(parents=True)
        bookie = make(place)
        running.callback(bookie.stop)
        seconds.append(bookie.start())
        bookies.append(bookie)
    return bookies, seconds
