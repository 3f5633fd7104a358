#!/usr/bin/env python3
"""The cost of a message on this machine when nothing is done with it: `python bench/floor.py`.

Loops of a few lines, without Pulsar, topics or anything else, each in a process of its own,
loaded by another process. CPU is the loop's, user and system time, a message:

    echo, 1,000 a second     receive, send: what waking up costs
    store, 1,000 a second    receive, write and sync a journal as the server does, send
    echo, 100 connections    receive, send, one message each in flight, as fast as it goes
    store, 20 in flight      receive 20 at once, write and sync, acknowledge, send to a reader, and
                             receive what it acknowledges: a round of MQTT's QoS 1

A server that stays below these figures on the same machine has moved work out of its process.
"""

from __future__ import annotations

import multiprocessing
import resource
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.machine.kernel_writes import open_kernel_writes
from magnetar.bookie.machine.memory import aligned
from magnetar.bookie.server.journal.files import JournalFile, JournalFiles
from magnetar.core.ports.disk import SubmittedWrites

SECONDS = 3
REQUEST = b"x" * 134
"""As long as a SEND with 100 bytes."""
RECEIPT = b"y" * 40
JOURNAL_BYTES = 64 * 1024 * 1024
RECORD_BYTES = 512
ROUND = 20
PUBLISHES = b"p" * (112 * ROUND)
"""PUBLISH packets with 100 bytes."""
ACKNOWLEDGEMENTS = b"a" * (4 * ROUND)
ROUND_BYTES = 2560
"""What the journal gets for them, in whole blocks."""


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def paced(address: tuple[str, int], rate: int) -> None:
    """One message at a time, so many a second."""
    with socket.create_connection(address) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        for i in range(SECONDS * rate):
            select.select([], [], [], max(0.0, started + i / rate - time.perf_counter()))
            stream.sendall(REQUEST)
            stream.recv(len(RECEIPT))


def crowd(address: tuple[str, int], connections: int) -> None:
    """One message in flight on each connection."""
    streams = {}
    poller = select.epoll()
    for _ in range(connections):
        stream = socket.create_connection(address)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        streams[stream.fileno()] = stream
        poller.register(stream, select.EPOLLIN)
        stream.sendall(REQUEST)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for fd, _ in poller.poll():
            streams[fd].recv(len(RECEIPT))
            streams[fd].sendall(REQUEST)
    for stream in streams.values():
        stream.recv(len(RECEIPT))


def pair(address: tuple[str, int], _: int) -> None:
    """Twenty messages in flight, and a reader that acknowledges them."""
    with socket.create_connection(address) as device, socket.create_connection(address) as reader:
        for stream in (device, reader):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            device.sendall(PUBLISHES)
            device.recv(len(ACKNOWLEDGEMENTS), socket.MSG_WAITALL)
            reader.recv(len(PUBLISHES), socket.MSG_WAITALL)
            reader.sendall(ACKNOWLEDGEMENTS)


def accept(door: socket.socket, connections: int) -> dict[int, socket.socket]:
    streams = {}
    for _ in range(connections):
        stream, _ = door.accept()
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        streams[stream.fileno()] = stream
    return streams


def serve_echo(streams: dict[int, socket.socket]) -> int:
    """Until a peer goes; returns how many messages came."""
    poller = select.epoll()
    for fd in streams:
        poller.register(fd, select.EPOLLIN)
    buffer = bytearray(256 * 1024)
    count = 0
    while True:
        for fd, _ in poller.poll():
            if not streams[fd].recv_into(buffer):
                return count
            count += 1
            streams[fd].send(RECEIPT)


class Store:
    """Receives from the first peer, writes durably, and answers; with a second peer, sends it what
    the first one sent, and receives what it says.
    """

    def __init__(self, answer: bytes, delivery: bytes, record_bytes: int) -> None:
        self._answer = answer
        self._delivery = delivery
        self._record_bytes = record_bytes

    def __call__(self, streams: dict[int, socket.socket]) -> int:
        """Until the first peer goes; returns how many times it sent something."""
        writes = open_kernel_writes(aligned(self._record_bytes))
        if writes is None:
            raise SystemExit("this system does not write by itself")
        with tempfile.TemporaryDirectory(dir=".") as folder:
            directory = SystemDisk().directory(folder)
            lock = threading.Lock()
            files = JournalFiles(directory, lock, size_max=JOURNAL_BYTES, spares_max=0)
            journal = files.create(1, JOURNAL_BYTES - 4096, synced=True)
            try:
                return self._serve(streams, writes, journal)
            finally:
                journal.close()
                writes.close()

    def _serve(
        self, streams: dict[int, socket.socket], writes: SubmittedWrites, journal: JournalFile
    ) -> int:
        first, *others = streams
        poller = select.epoll()
        for fd in (*streams, writes.descriptor):
            poller.register(fd, select.EPOLLIN)
        buffer = bytearray(256 * 1024)
        begin, count = journal.position, 0
        while True:
            for ready, _ in poller.poll():
                if ready == writes.descriptor:
                    journal.position += writes.ended() or 0
                    streams[first].send(self._answer)
                    for other in others:
                        streams[other].send(self._delivery)
                elif ready != first:
                    if not streams[ready].recv_into(buffer):
                        poller.unregister(ready)
                elif streams[first].recv_into(buffer):
                    count += 1
                    if journal.position > JOURNAL_BYTES // 2:
                        journal.position = begin
                    writes.begin(journal.fd, journal.position, 0, self._record_bytes)
                else:
                    return count


Serve = Callable[[dict[int, socket.socket]], int]
Load = Callable[[tuple[str, int], int], None]


def measure(
    name: str, serve: Serve, load: Load, connections: int, argument: int, messages: int = 1
) -> None:
    """`messages` come at once."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        peer = multiprocessing.Process(target=load, args=(door.getsockname(), argument))
        peer.start()
        streams = accept(door, connections)
    before = cpu_seconds()
    count = serve(streams)
    spent = cpu_seconds() - before
    peer.join()
    count *= messages
    print(f"{name:24} {spent / count * 1e6:6.1f} us a message, {count / SECONDS:,.0f} a second")


def main() -> None:
    measure("echo, 1,000 a second", serve_echo, paced, 1, 1000)
    measure("store, 1,000 a second", Store(RECEIPT, b"", RECORD_BYTES), paced, 1, 1000)
    measure("echo, 100 connections", serve_echo, crowd, 100, 100)
    round_of_20 = Store(ACKNOWLEDGEMENTS, PUBLISHES, ROUND_BYTES)
    measure("store, 20 in flight", round_of_20, pair, 2, 0, messages=ROUND)


if __name__ == "__main__":
    main()
