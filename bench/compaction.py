"""Compaction for Pulsar's clients: messages a second, memory, and what another topic notices of it.

    python -m bench.compaction [--messages 10000000] [--keys 1000000] [--batch 1000]
    python -m bench.compaction --server both      Apache Pulsar, too

One topic gets batches of messages, whose keys come in a wild order; then it is compacted by REST.
Before and during that, one message after the other is published to another topic. The memory is
what the process has more at its peak than before the compaction. At the end a reader counts what is
left.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pulsar

from bench.drive import process
from bench.drive.cases import Protocol
from bench.drive.server import Magnetar, Server
from bench.peers.pulsar import Pulsar

ROOT = Path(__file__).resolve().parents[1]
TOPIC, OTHER = "compacted", "other"
VALUE = b"v" * 50
POLL_SECONDS = 0.5
"""Seldom, since those who ask take the cores, too."""
WAIT_SECONDS = 60.0
QUIET_SECONDS = 5.0
STEP = 7_368_787
"""A prime: keys come in an order that looks like chance."""


def memory_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


class OtherTopic:
    """Publishes to another topic, one message after the other, until it is stopped: in a process of
    its own, since a thread would wait for those that fill, ask and read here.
    """

    def __init__(self, url: str) -> None:
        words = [sys.executable, "-m", "bench.compaction", "--publish-to", url]
        self._child = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.p99_ms()  # it has begun

    def p99_ms(self) -> float:
        """Of the messages since the last call."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write("p99\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        assert answer, "who publishes to the other topic has ended"
        return float(answer)

    def stop(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(WAIT_SECONDS)


def publish_to(url: str) -> None:
    """What that process does: publish, and say the p99 for each line that it is given."""
    client = connect(url)
    producer = client.create_producer(OTHER, batching_enabled=False)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=take_lines, args=[lines], daemon=True).start()
    seconds: list[float] = []
    while True:
        begun = time.perf_counter()
        producer.send(VALUE)
        seconds.append(time.perf_counter() - begun)
        if lines.empty():
            continue
        if not lines.get():
            break
        seconds.sort()
        print(seconds[int(len(seconds) * 0.99)] * 1000, flush=True)
        seconds.clear()
    client.close()


def take_lines(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put("")


def connect(url: str) -> pulsar.Client:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(url, logger=logger, operation_timeout_seconds=60)


def fill(client: pulsar.Client, arguments: argparse.Namespace) -> None:
    producer = client.create_producer(
        TOPIC,
        batching_enabled=True,
        batching_max_messages=arguments.batch,
        batching_max_allowed_size_in_bytes=4 * 1024 * 1024,
        batching_max_publish_delay_ms=100,
        max_pending_messages=50_000,
        block_if_queue_full=True,
    )
    for number in range(arguments.messages):
        producer.send_async(VALUE, None, partition_key=f"key-{number * STEP % arguments.keys}")
    producer.flush()


def ask(http_port: int, method: str, path: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{http_port}/admin/v2/persistent/public/default/{TOPIC}/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
        text = answer.read()
    return json.loads(text) if text else {}


def compact(http_port: int) -> float:
    """Compact; returns the seconds that the server says it took."""
    ask(http_port, "PUT", "compaction")
    while (last := ask(http_port, "GET", "compaction"))["status"] == "RUNNING":
        process.pause(POLL_SECONDS)
    assert last["status"] == "SUCCESS", last
    return ask(http_port, "GET", "stats")["compaction"]["lastCompactionDurationTimeInMills"] / 1000


def left(client: pulsar.Client) -> int:
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest, is_read_compacted=True)
    count = 0
    while reader.has_message_available():
        reader.read_next(20_000)
        count += 1
    return count


def measure(server: Server, http_port: int, arguments: argparse.Namespace) -> None:
    url = f"pulsar://127.0.0.1:{server.port(Protocol.PULSAR)}"
    client = connect(url)
    client.subscribe(TOPIC, "keeper").close()
    fill(client, arguments)
    ask(http_port, "GET", "compaction")  # a server may load what answers, once
    other = OtherTopic(url)
    process.pause(QUIET_SECONDS)
    quiet_ms, before = other.p99_ms(), memory_bytes(server.pid, "VmRSS")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak begins anew
    seconds = compact(http_port)
    peak, busy_ms = memory_bytes(server.pid, "VmHWM"), other.p99_ms()
    other.stop()
    print(
        f"{server.name:20} {arguments.messages / seconds:9.0f} messages/s {seconds:7.1f} s"
        f"   {(peak - before) / 1e6:6.0f} MB more"
        f"   p99 of another topic {quiet_ms:5.2f} ms, then {busy_ms:5.2f} ms"
        f"   left {left(client)}",
        flush=True,
    )
    client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--server", choices=["magnetar", "pulsar", "both"], default="magnetar")
    parser.add_argument("--publish-to", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.publish_to:
        publish_to(arguments.publish_to)
        return
    with tempfile.TemporaryDirectory() as folder:
        made: list[Server] = []
        if arguments.server != "pulsar":
            made.append(Magnetar(_folder(folder, "ours"), synced=True))
        if arguments.server != "magnetar":
            made.append(Pulsar(_folder(folder, "pulsar"), synced=True))
        for server in made:
            server.prepare()
            server.start()
            try:
                port = server.http_port if isinstance(server, Pulsar) else _http(server)
                measure(server, port, arguments)
            finally:
                server.stop()
                server.close()


def _http(server: Server) -> int:
    assert isinstance(server, Magnetar)
    return server.port_of("http")


def _folder(parent: str, name: str) -> Path:
    made = Path(parent) / name
    made.mkdir()
    return made


if __name__ == "__main__":
    main()
