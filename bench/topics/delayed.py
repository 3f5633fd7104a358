#!/usr/bin/env python3
"""Delayed messages after a restart: `python -m bench.topics.delayed`.

A shared subscription has a backlog of messages that are due in a day. The index of their times is
in memory only, as in Apache's `InMemoryDelayedDeliveryTracker`: whoever attaches after a restart
has the backlog read, and the index made again. The figures are how long that takes after the server
was killed and is there again, its CPU for it, and the memory that the server has more by then, for
caches and all. Of half a million messages the times are kept, of more it is known which are late.

Invariant: the figures are those of the moment in which all messages were in the index.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
import pulsar

from bench.drive import generator, process
from magnetar import Standalone, standalone

TOPIC: Final = "delayed"
DAY: Final = "86400"
LOOK_SECONDS: Final = 0.05


@contextmanager
def attached(server: Standalone) -> Iterator[None]:
    """A shared consumer, which gets nothing as long as nothing is due."""
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(server.pulsar_url, logger=quiet)
    client.subscribe(TOPIC, "s", consumer_type=pulsar.ConsumerType.Shared)
    yield
    client.close()


def wait_for(server: Standalone, count: int) -> float:
    """How long it takes until so many messages are in the index; seconds."""
    stats = f"{server.http_url}/admin/v2/persistent/public/default/{TOPIC}/stats"
    started = time.perf_counter()
    while True:
        found = httpx.get(stats, timeout=60).json()["subscriptions"]["s"]
        if found["msgDelayed"] >= count:
            return time.perf_counter() - started
        threading.Event().wait(LOOK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=100, help="of a message")
    parser.add_argument("--restarts", type=int, default=3)
    chosen = parser.parse_args()
    generator.build({generator.PULSARLOAD})
    with standalone(sync=False) as server:
        with attached(server):
            port = int(server.pulsar_url.rpartition(":")[2])
            asked = ["--mode", "publish", "--topic", TOPIC, "--delay", DAY, "--stall", "60"]
            asked += ["--messages", str(chosen.messages), "--bytes", str(chosen.bytes)]
            line = generator.run(generator.PULSARLOAD, port, asked, server.pid)
            if not line.ok:
                raise generator.GeneratorError(f"publishing failed: {line.trouble}")
            wait_for(server, chosen.messages)
        for _ in range(chosen.restarts):
            server.kill()
            server.restart()
            memory, cpu = process.memory(server.pid), process.cpu_seconds(server.pid)
            with attached(server):
                seconds = wait_for(server, chosen.messages)
                cpu = process.cpu_seconds(server.pid) - cpu
                more = process.memory(server.pid).resident_mb - memory.resident_mb
            sys.stdout.write(
                f"{chosen.messages} delayed messages are back {seconds:.1f} s after their consumer;"
                f" {1e6 * cpu / chosen.messages:.2f} us of CPU each, {more:.0f} MB\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
