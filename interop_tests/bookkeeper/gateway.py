"""`magnetar gateway` as a process, for tests with bookies and a ZooKeeper."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from interop_tests.bookkeeper.cluster import wait_until
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from magnetar.child import FREE_PORTS

MAGNETAR = str(Path(sys.executable).with_name("magnetar"))
SESSION_SECONDS = 2


class Gateway:
    """A gateway as a process, on ports of its own; it is killed with the `with` block."""

    def __init__(
        self, folder: Path, zookeeper: ZooKeeper, *more: str, drain_seconds: float = 8
    ) -> None:
        """`more` are flags, which win over those that are given here."""
        folder.mkdir()
        self._folder = folder
        self._ready = folder / "ready.json"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    MAGNETAR, "gateway", "--metadata", f"zk:{zookeeper.address}",
                    "--bookkeeper", f"zk+hierarchical://{zookeeper.address}/ledgers",
                    "--zk-timeout", str(SESSION_SECONDS), "--ready-file", str(self._ready),
                    *FREE_PORTS, *more,
                ],
                cwd=folder, stderr=log,
                env={**os.environ, "MAGNETAR_LIMITS_DRAIN_SECONDS": str(drain_seconds)},
            )  # fmt: skip

    def serve(self) -> None:
        wait_until(self._ready.exists, self.process, "the gateway")

    def url(self, listener: str) -> str:
        return str(json.loads(self._ready.read_text())[listener])

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
