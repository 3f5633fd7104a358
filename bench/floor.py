#!/usr/bin/env python3
"""The cost of a message on this machine when nothing is done with it: `python bench/floor.py`.

Three loops of a few lines, without Pulsar, topics or anything else, each in a process of its own,
loaded by another process. CPU is the loop's, user and system time, a message:

    echo, 1,000 a second     receive, send: what waking up costs
    store, 1,000 a second    receive, write and sync a journal as the server does, send
    echo, 100 connections    receive, send, one message each in flight, as fast as it goes

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
from magnetar.bookie.server.journal.files import JournalFiles

SECONDS = 3
REQUEST = b"x" * 134
"""As long as a SEND with 100 bytes."""
RECEIPT = b"y" * 40
JOURNAL_BYTES = 64 * 1024 * 1024
RECORD_BYTES = 512


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


def serve_store(streams: dict[int, socket.socket]) -> int:
    """The same for one peer, with a durable write between."""
    ((fd, stream),) = streams.items()
    buffer = bytearray(256 * 1024)
    writes = open_kernel_writes(aligned(RECORD_BYTES))
    if writes is None:
        raise SystemExit("this system does not write by itself")
    count = 0
    with tempfile.TemporaryDirectory(dir=".") as folder:
        directory = SystemDisk().directory(folder)
        lock = threading.Lock()
        files = JournalFiles(directory, lock, size_max=JOURNAL_BYTES, spares_max=0)
        journal = files.create(1, JOURNAL_BYTES - 4096, synced=True)
        poller = select.epoll()
        poller.register(fd, select.EPOLLIN)
        poller.register(writes.descriptor, select.EPOLLIN)
        while True:
            for ready, _ in poller.poll():
                if ready != fd:
                    journal.position += writes.ended() or 0
                    stream.send(RECEIPT)
                elif stream.recv_into(buffer):
                    count += 1
                    writes.begin(journal.fd, journal.position, 0, RECORD_BYTES)
                else:
                    journal.close()
                    writes.close()
                    return count


Serve = Callable[[dict[int, socket.socket]], int]
Load = Callable[[tuple[str, int], int], None]


def measure(name: str, serve: Serve, load: Load, connections: int, argument: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        peer = multiprocessing.Process(target=load, args=(door.getsockname(), argument))
        peer.start()
        streams = accept(door, connections)
    before = cpu_seconds()
    count = serve(streams)
    spent = cpu_seconds() - before
    peer.join()
    print(f"{name:24} {spent / count * 1e6:6.1f} us a message, {count / SECONDS:,.0f} a second")


def main() -> None:
    measure("echo, 1,000 a second", serve_echo, paced, 1, 1000)
    measure("store, 1,000 a second", serve_store, paced, 1, 1000)
    measure("echo, 100 connections", serve_echo, crowd, 100, 100)


if __name__ == "__main__":
    main()
