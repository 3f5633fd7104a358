"""`magnetar recovery` as a process."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from interop_tests.bookkeeper import signals
from interop_tests.bookkeeper.cluster import MAGNETAR, wait_until
from interop_tests.waiting import until
from magnetar.bookie.client.connection.question import ask_once
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.rpc.messages import Read

HASTY = ("--zk-timeout", "2", "--open-ledger-grace-period", "1", "--failed-ledger-pause", "8")
REPAIR_SECONDS = 60


class Recovery:
    """One that repairs the ledgers of a cluster; it is killed with the `with` block."""

    def __init__(self, uri: str, folder: Path, *more: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._words = ["recovery", "--metadata-uri", uri, *HASTY, *more]
        self._folder = folder

    def __enter__(self) -> Self:
        ready = self._folder / "ready.json"
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [MAGNETAR, *self._words, "--ready-file", str(ready)], stderr=log
            )
        wait_until(ready.exists, self._process, "the recovery")
        self.listeners: dict[str, str] = json.loads(ready.read_text())
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def send_signal(self, how: signal.Signals) -> None:
        signals.send(self._process, how)

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(30)

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")


def wait_for(what: Callable[[], Any], said: Callable[[], str]) -> None:
    """Until something is so; `said` are the logs, for a failure."""
    until(what, lambda: said()[-20_000:], REPAIR_SECONDS)


def command(uri: str, *words: str, succeeds: bool = True) -> Any:
    """What a command of ours prints as JSON."""
    environment = {**os.environ, "MAGNETAR_METADATA_URI": uri}
    done = subprocess.run(
        [MAGNETAR, *words, "--json"],
        capture_output=True, text=True, timeout=90, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) is succeeds, done.stderr
    return json.loads(done.stdout) if succeeds else done.stderr


def members(uri: str, ledger: int) -> list[list[str]]:
    """The ensembles of a ledger."""
    found = command(uri, "ledger", "metadata", str(ledger))
    return [each["bookies"] for each in found["segments"]]


def is_repaired(uri: str, ledger: int, lost: str) -> bool:
    """Whether a ledger does without a bookie, and is not marked any more."""
    if any(lost in bookies for bookies in members(uri, ledger)):
        return False
    marked = command(uri, "ledger", "under-replicated")
    return all(each["ledger_id"] != ledger for each in marked)


@contextmanager
def frozen(recovery: Recovery) -> Iterator[None]:
    """Nothing of it runs for a while."""
    recovery.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        recovery.send_signal(signal.SIGCONT)


async def asked(bookie_id: str, ledger_id: int, entry_id: int) -> object:
    """What a bookie answers who is asked for an entry."""
    host, _, port = bookie_id.rpartition(":")
    return await ask_once(SystemNetwork(), host, int(port), Read(ledger_id, entry_id))
