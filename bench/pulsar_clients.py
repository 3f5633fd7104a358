"""What idle clients of Pulsar's cost: WebSockets, and watchers of topics.

    .venv/bin/python -m bench.pulsar_clients websockets --count 1000
    .venv/bin/python -m bench.pulsar_clients watchers --topics 10000 --watchers 100

`websockets` opens consumers over plain sockets and prints the server's memory for each. `watchers`
makes topics, has patterns watched, and prints how long it takes until all watchers are told of a
new topic, and the CPU that the idle server takes with them and without.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx

from magnetar import Standalone, standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

IDLE_SECONDS: Final = 30.0
"""Between two rounds of housekeeping, one of which is in it."""
SETTLE_SECONDS: Final = 3.0
STILL: Final = 0.9
ROUNDS: Final = 20
TICKS_PER_SECOND: Final = 100
PAGE_KB: Final = 4
HANDSHAKE: Final = (
    "GET /ws/v2/consumer/persistent/public/default/t%d/s HTTP/1.1\r\nHost: localhost\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def memory_kb(pid: int) -> int:
    """Private memory of a process."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * PAGE_KB


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def idle_cpu(pid: int) -> float:
    """CPU of an idle server, in percent of a core, as soon as it gets no less any more."""
    found, less = 0.0, True
    while less:
        before = cpu_seconds(pid)
        pause(IDLE_SECONDS)
        last, found = found, 100 * (cpu_seconds(pid) - before) / IDLE_SECONDS
        less = not last or found < last * STILL
    return found


@contextlib.contextmanager
def websocket(server: Standalone, topic: int) -> Iterator[socket.socket]:
    host, _, port = server.http_url.partition("://")[2].rpartition(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall((HANDSHAKE % topic).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += sock.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        yield sock


def websockets(count: int, topics: int) -> None:
    """Consumers over WebSocket. Before them, as many consumers of the binary protocol on one
    connection show what the subscriptions and topics cost.
    """
    with standalone() as server, contextlib.ExitStack() as stack:
        for index in range(10):  # imports, caches
            stack.enter_context(websocket(server, -1 - index))
        named = [f"t{index % topics}" for index in range(count)]
        with Client(server) as binary:
            for number, name in enumerate(dict.fromkeys(named)):
                binary.ask(peer.subscribe(number, number, name, "s", sub_type=1))
        before, started = memory_kb(server.pid), time.perf_counter()
        for index in range(count):
            stack.enter_context(websocket(server, index % topics))
        seconds = time.perf_counter() - started
        pause(SETTLE_SECONDS)
        each = (memory_kb(server.pid) - before) / count
        print(f"{count} idle WebSockets: {each:.1f} KB each, opened in {seconds:.1f} s")
        print(f"idle CPU: {idle_cpu(server.pid):.2f} % of a core")


class Client:
    """A client of the binary protocol."""

    def __init__(self, server: Standalone) -> None:
        host, _, port = server.pulsar_url.partition("://")[2].rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self._held = b""
        flags = pb.FeatureFlags(supports_topic_watchers=True)
        self.ask(peer.connect(feature_flags=flags))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.socket.close()

    def ask(self, frame: bytes) -> peer.ReceivedFrame:
        self.socket.sendall(frame)
        return self.hear()

    def hear(self) -> peer.ReceivedFrame:
        while True:
            if len(self._held) >= 4:
                end = 4 + int.from_bytes(self._held[:4], "big")
                if len(self._held) >= end:
                    frame, self._held = self._held[:end], self._held[end:]
                    (found,) = peer.parse_frames(frame)
                    if found.kind == "PING":
                        self.socket.sendall(peer.pong())
                        continue
                    return found
            self._held += self.socket.recv(1 << 20)


def watchers(topics: int, count: int) -> None:
    with standalone() as server, contextlib.ExitStack() as stack:
        topics_url = f"{server.http_url}/admin/v2/persistent/public/default"
        http = stack.enter_context(httpx.Client(base_url=topics_url))
        for index in range(topics // 100):
            answer = http.put(f"/t{index}/partitions", json=100, timeout=60)
            assert answer.status_code == 204, answer.text
        print(f"{topics} topics; idle CPU without watchers: {idle_cpu(server.pid):.2f} %")
        memory = memory_kb(server.pid)
        clients = [stack.enter_context(Client(server)) for _ in range(count)]
        started = time.perf_counter()
        for number, client in enumerate(clients):
            said = pb.CommandWatchTopicList(
                request_id=1,
                watcher_id=1,
                namespace="public/default",
                topics_pattern=f"persistent://public/default/(t|new).{{0,{number + 10}}}",
            )
            found = client.ask(peer.frame("WATCH_TOPIC_LIST", said))
            assert len(found.body.topic) == topics, found.kind
        seconds = time.perf_counter() - started
        used = memory_kb(server.pid) - memory
        print(f"{count} patterns watched in {seconds:.1f} s, {used / 1024:.1f} MB")
        print(f"idle CPU with watchers: {idle_cpu(server.pid):.2f} %")
        told = []
        for number in range(ROUNDS):
            started = time.perf_counter()
            assert http.put(f"/new{number}").status_code == 204
            for client in clients:
                found = client.hear()
                assert list(found.body.new_topics), found
            told.append(1000 * (time.perf_counter() - started))
            pause(0.5)
        median = statistics.median(told)
        print(f"all are told of a new topic after {median:.0f} ms (median), {max(told):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("websockets", "watchers"))
    parser.add_argument("--count", type=int, default=1_000, help="WebSockets")
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=100)
    asked = parser.parse_args()
    if asked.what == "websockets":
        websockets(asked.count, min(asked.topics, asked.count))
    else:
        watchers(asked.topics, asked.watchers)


if __name__ == "__main__":
    main()
