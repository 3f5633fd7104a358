#!/usr/bin/env python3
"""What TLS costs the server: `python -m bench.tls`, `--server both` beside Apache Pulsar.

The stock Python client (Pulsar's C++ client) publishes 1 KiB messages in batches of 64 KiB, and in
the second shape another client reads them. Rounds over the plain port and over the port for TLS
alternate on one server process, so that what else the machine does falls on both. CPU is user and
system time of all the server's threads, a million bytes of payload; the ratio is that of the two
medians, beside the lowest and the highest of neighbouring rounds.

Invariant: a round counts only if every message was acknowledged, and read if it is read.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulsar

from bench.drive import process
from magnetar.security.authority import make_authority

MESSAGE: Final = b"m" * 1024
BATCH_BYTES: Final = 64 * 1024
QUEUE: Final = 2_000
TIMEOUT_MS: Final = 60_000


class Door(NamedTuple):
    """Where one connects, and whom one trusts there."""

    name: str
    url: str
    trusted: str = ""


class Served(NamedTuple):
    """A running server."""

    name: str
    pid: int
    doors: tuple[Door, Door]


@contextmanager
def magnetar_server(folder: Path, _heap: str) -> Iterator[Served]:
    from magnetar import standalone

    with standalone(folder / "data", tls=_certificates(folder)) as server:
        trusted = str(folder / "ca.pem")
        plain = Door("plain", server.pulsar_url)
        yield Served("magnetar", server.pid, (plain, Door("tls", server.pulsar_tls_url, trusted)))


@contextmanager
def pulsar_server(folder: Path, heap: str) -> Iterator[Served]:
    from bench.drive.server import free_port
    from bench.peers.pulsar import Pulsar

    files, port = _certificates(folder), free_port()
    server = Pulsar(folder, synced=True, heap=heap)
    with server.conf.open("a") as conf:
        conf.write(
            f"brokerServicePortTls={port}\ntlsCertificateFilePath={files['certificate']}\n"
            f"tlsKeyFilePath={files['key']}\n"
        )
    server.prepare()
    server.start()
    try:
        plain = Door("plain", f"pulsar://127.0.0.1:{server.broker_port}")
        secure = Door("tls", f"pulsar+ssl://127.0.0.1:{port}", str(folder / "ca.pem"))
        yield Served(server.name, server.pid, (plain, secure))
    finally:
        server.stop()


SERVERS: Final[dict[str, Callable[[Path, str], Any]]] = {
    "magnetar": magnetar_server,
    "pulsar": pulsar_server,
}


def _certificates(folder: Path) -> dict[str, str]:
    """An authority and a server's certificate, P-256."""
    make_authority(folder, "bench").issue_server("server", ["localhost", "127.0.0.1"])
    return {"certificate": str(folder / "server.pem"), "key": str(folder / "server.key")}


def one_round(served: Served, door: Door, topic: str, count: int, reads: bool) -> float:
    """Send, and read if that is asked for; milliseconds of the server's CPU a megabyte."""
    options: dict[str, Any] = {"logger": pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)}
    if door.trusted:
        options |= {"tls_trust_certs_file_path": door.trusted, "tls_validate_hostname": True}
    client = pulsar.Client(door.url, **options)
    consumer = client.subscribe(topic, "s", receiver_queue_size=QUEUE) if reads else None
    producer = client.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=BATCH_BYTES // len(MESSAGE),
        batching_max_allowed_size_in_bytes=2 * BATCH_BYTES,
        batching_max_publish_delay_ms=10,
        max_pending_messages=QUEUE,
        block_if_queue_full=True,
    )
    failed: list[Any] = []
    reader = threading.Thread(target=_read, args=(consumer, count, failed))
    before = process.cpu_seconds(served.pid)
    if consumer is not None:
        reader.start()

    def stored(result: Any, _id: Any) -> None:
        if result != pulsar.Result.Ok:
            failed.append(result)

    for _ in range(count):
        producer.send_async(MESSAGE, stored)
    producer.flush()
    if consumer is not None:
        reader.join()
    spent = process.cpu_seconds(served.pid) - before
    client.close()
    if failed:
        raise SystemExit(f"{served.name}, {door.name}: {failed[0]}")
    return spent * 1000 / (count * len(MESSAGE) / 1e6)


def _read(consumer: Any, count: int, failed: list[Any]) -> None:
    last = None
    try:
        for _ in range(count):
            last = consumer.receive(TIMEOUT_MS)
        consumer.acknowledge_cumulative(last)
    except pulsar.PulsarException as error:
        failed.append(error)


def measure(served: Served, rounds: int, count: int, warm: int) -> None:
    """Print a row for each shape."""
    for shape, reads in (("publish", False), ("publish and consume", True)):
        figures: dict[str, list[float]] = {door.name: [] for door in served.doors}
        for number in range(-warm, rounds):
            for door in served.doors:
                topic = f"tls-{shape.replace(' ', '-')}-{door.name}-{number + warm}"
                found = one_round(served, door, topic, count, reads)
                if number >= 0:
                    figures[door.name].append(found)
        plain, secure = figures["plain"], figures["tls"]
        pairs = sorted(b / a for a, b in zip(plain, secure, strict=True))
        ratio = statistics.median(secure) / statistics.median(plain)
        sys.stdout.write(
            f"| {served.name} | {shape} | {_shown(plain)} | {_shown(secure)} | {ratio:.2f} "
            f"({pairs[0]:.2f} to {pairs[-1]:.2f}) |\n"
        )
        sys.stdout.flush()


def _shown(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f} ({min(figures):.2f} to {max(figures):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", choices=[*SERVERS, "both"], default="magnetar")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=1, help="rounds before those that count")
    parser.add_argument("--megabytes", type=int, default=200, help="of payload in a round")
    parser.add_argument("--heap", choices=["Z", "S"], default="Z", help="of the peer")
    chosen = parser.parse_args()
    count = chosen.megabytes * 1_000_000 // len(MESSAGE)
    sys.stdout.write(
        "| server | shape | plain, CPU ms a MB | TLS | ratio |\n|---|---|---|---|---|\n"
    )
    names = list(SERVERS) if chosen.server == "both" else [chosen.server]
    for name in names:
        with (
            tempfile.TemporaryDirectory() as folder,
            SERVERS[name](Path(folder), chosen.heap) as served,
        ):
            measure(served, chosen.rounds, count, chosen.warm)


if __name__ == "__main__":
    main()
