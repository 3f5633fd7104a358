#!/usr/bin/env python3
"""Delayed messages after a restart: `python -m bench.topics.delayed [--server both]`.

A shared subscription has a backlog of messages that are due in a day, and in the middle of them one
that is due while the server is down. The figures are how long the first consumer after the restart
waits for that one, how long it takes until all others are in the index again, the server's CPU for
it, and the memory that the server has more by then, for caches and all.

Here an index of delayed entries is beside the log, and what is not in it yet is read. Beside it is
Apache Pulsar with its own (`BucketDelayedDeliveryTracker`), which it writes for ledgers that have
ended: so they end here when they have 50,000 entries, as they do by default after ten minutes. Its
log has to say that it recovered them. Its default (`InMemoryDelayedDeliveryTracker`) is no peer
here: when 50,000 messages have the same delay, it reads no further until they are due.

Invariant: the figures are those of the moment in which all messages were in the index.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import httpx
import pulsar

from bench.drive import generator, process
from bench.peers.pulsar import Pulsar
from magnetar import Standalone, standalone

TOPIC: Final = "delayed"
DAY: Final = "86400"
LOOK_SECONDS: Final = 0.05
DUE_SECONDS: Final = 90.0
"""From when that message is published until it is due: meanwhile the others are, and the index is
written.
"""
WAIT_SECONDS: Final = 300.0
RECOVERED: Final = "Recover delayed message index bucket snapshot finish"
ON_DISK: Final = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"


class Restarted(Protocol):
    """A server that is killed and started again with its data."""

    name: str

    @property
    def pid(self) -> int: ...

    @property
    def pulsar_url(self) -> str: ...

    @property
    def http_url(self) -> str: ...

    def stop(self) -> None: ...

    def start(self) -> None: ...

    def remark(self) -> str:
        """What has to be said of the figures."""
        ...


class Ours:
    name = "magnetar"

    def __init__(self, server: Standalone) -> None:
        self._server = server
        self.pulsar_url, self.http_url = server.pulsar_url, server.http_url

    @property
    def pid(self) -> int:
        return self._server.pid

    def stop(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.restart()

    def remark(self) -> str:
        return ""


class Theirs:
    name = "pulsar, with its index on the disk"

    def __init__(self, server: Pulsar) -> None:
        self._server = server
        self.pulsar_url = f"pulsar://127.0.0.1:{server.broker_port}"
        self.http_url = f"http://127.0.0.1:{server.http_port}"

    @property
    def pid(self) -> int:
        return self._server.pid

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def remark(self) -> str:
        """What it recovered of its index; without that there is nothing to compare."""
        log = (self._server.directory / "server.log").read_text(errors="replace")
        found = [line for line in log.splitlines() if RECOVERED in line]
        if not found:
            raise generator.GeneratorError("Apache Pulsar recovered no index")
        return f" ({found[-1].partition(RECOVERED)[2].strip(' ,')})"


class Attached:
    """A shared consumer, and when it got the message that is due."""

    def __init__(self, client: pulsar.Client) -> None:
        began = time.perf_counter()
        self.consumer = client.subscribe(TOPIC, "s", consumer_type=pulsar.ConsumerType.Shared)
        self.due_seconds = -1.0
        self._began = began
        self._waiter = threading.Thread(target=self._wait, daemon=True)

    def wait_for_due(self) -> None:
        self._waiter.start()

    def due(self) -> float:
        self._waiter.join(WAIT_SECONDS)
        return self.due_seconds

    def _wait(self) -> None:
        self.consumer.acknowledge(self.consumer.receive(int(1000 * WAIT_SECONDS)))
        self.due_seconds = time.perf_counter() - self._began


@contextmanager
def connected(server: Restarted) -> Iterator[pulsar.Client]:
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(server.pulsar_url, logger=quiet)
    yield client
    client.close()


def wait_for(server: Restarted, count: int) -> float:
    """How long it takes until so many messages are in the index; seconds."""
    stats = f"{server.http_url}/admin/v2/persistent/public/default/{TOPIC}/stats"
    started = time.perf_counter()
    while True:
        found = httpx.get(stats, timeout=60).json()["subscriptions"]["s"]
        if found["msgDelayed"] >= count:
            return time.perf_counter() - started
        if time.perf_counter() - started > WAIT_SECONDS:
            raise generator.GeneratorError(f"{server.name} has {found['msgDelayed']} in its index")
        threading.Event().wait(LOOK_SECONDS)


def fill(server: Restarted, count: int, size: int) -> float:
    """Publish all; returns when the one in the middle is due."""
    with connected(server) as client:
        Attached(client)
        publish(server, count // 2, size)
        producer = client.create_producer(TOPIC)
        producer.send(b"due", deliver_after=timedelta(seconds=DUE_SECONDS))
        due_at = time.monotonic() + DUE_SECONDS
        publish(server, count - count // 2, size)
        wait_for(server, count + 1)
    return due_at


def publish(server: Restarted, count: int, size: int) -> None:
    port = int(server.pulsar_url.rpartition(":")[2])
    asked = ["--mode", "publish", "--topic", TOPIC, "--delay", DAY, "--stall", "60"]
    asked += ["--messages", str(count), "--bytes", str(size)]
    line = generator.run(generator.PULSARLOAD, port, asked, server.pid)
    if not line.ok:
        raise generator.GeneratorError(f"publishing failed: {line.trouble}")


def restart(server: Restarted, count: int, due_at: float) -> None:
    """Restart it once, and tell what its first consumer sees."""
    if time.monotonic() > due_at:
        raise generator.GeneratorError(f"{server.name} took longer than {DUE_SECONDS} s to fill")
    server.stop()
    threading.Event().wait(max(due_at - time.monotonic(), 0))
    server.start()
    memory, cpu = process.memory(server.pid), process.cpu_seconds(server.pid)
    with connected(server) as client:
        attached = Attached(client)
        attached.wait_for_due()
        seconds = wait_for(server, count)
        cpu = process.cpu_seconds(server.pid) - cpu
        more = process.memory(server.pid).resident_mb - memory.resident_mb
        due = attached.due()
    sys.stdout.write(
        f"{server.name}: {count} delayed messages are back {seconds:.1f} s after their consumer, "
        f"one that is due comes after {due:.1f} s; "
        f"{1e6 * cpu / count:.2f} us of CPU each, {more:.0f} MB{server.remark()}\n"
    )
    sys.stdout.flush()


@contextmanager
def apache() -> Iterator[Theirs]:
    with tempfile.TemporaryDirectory() as folder:
        server = Pulsar(Path(folder), synced=False)
        with server.conf.open("a") as conf:
            conf.write(f"delayedDeliveryTrackerFactoryClassName={ON_DISK}\n")
            conf.write("managedLedgerMinLedgerRolloverTimeMinutes=0\n")
        with (server.directory / "log4j2.properties").open("a") as logged:
            logged.write("logger.delayed.name=org.apache.pulsar.broker.delayed\n")
            logged.write("logger.delayed.level=info\n")
        server.prepare()
        server.start()
        try:
            yield Theirs(server)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=100, help="of a message")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--server", choices=["magnetar", "pulsar", "both"], default="magnetar")
    chosen = parser.parse_args()
    generator.build({generator.PULSARLOAD})

    def measure(server: Restarted) -> None:
        due_at = fill(server, chosen.messages, chosen.bytes)
        restart(server, chosen.messages, due_at)

    for _ in range(chosen.rounds):
        if chosen.server != "pulsar":
            with standalone(sync=False) as ours:
                measure(Ours(ours))
        if chosen.server != "magnetar":
            with apache() as theirs:
                measure(theirs)


if __name__ == "__main__":
    main()
