"""Adds of version 2 to a bookie over the network: rate, latency, and the bookie's CPU for each;
then batched reads of what was added, from its disk.

    python -m bench.bookie_load [--size 1024] [--outstanding 1 32 512] [--adds 100000]
    python -m bench.bookie_load --address 127.0.0.1:3181 --pid 1234      a bookie that runs already

Frames are made beforehand, so that the client costs little; still it shares the machine. CPU is
that of the bookie's process alone, user and system.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Final

from magnetar.bookie.format import digests, entries
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead

KEY: Final = digests.master_key(b"")
RESPONSE_BYTES: Final = 28
BATCH_BYTES: Final = 1 << 20
BATCH_AT: Final = 32
"""Where entries begin in the response."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
HEAD: Final = struct.pack(">I", version2.header(version2.ADD)) + KEY


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> int:
    """The memory of the process now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000


def frames(ledger_id: int, size: int, count: int) -> bytes:
    """The adds of one ledger; all have the same length."""
    run = entries.seal(ledger_id, 0, -1, 0, [bytes(size)] * count)
    length = struct.pack(">I", len(HEAD) + size + entries.OVERHEAD_BYTES)
    step = run.offsets[1]
    view = memoryview(run.blob)
    return b"".join(
        [length + HEAD + view[at + 4 : at + step] for at in range(0, count * step, step)]
    )


class Load:
    """Keeps so many adds outstanding, until all are answered."""

    def __init__(self, address: tuple[str, int], outstanding: int) -> None:
        self._outstanding = outstanding
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.latencies: list[float] = []

    def run(self, data: bytes, count: int) -> float:
        """Send all adds; returns the seconds that they took."""
        view, step = memoryview(data), len(data) // count
        self._socket.setblocking(False)
        allowed, sent, acked, rest = self._outstanding, 0, 0, 0
        times: deque[tuple[int, float]] = deque()
        started = time.perf_counter()
        while acked < count:
            end = min(allowed, count) * step
            waits = [self._socket] if sent < end else []
            readable, writable, _ = select.select([self._socket], waits, [])
            now = time.perf_counter()
            if writable:
                sent += self._socket.send(view[sent : min(end, sent + 256 * 1024)])
                times.append((sent // step, now))
            if readable:
                received = self._socket.recv(256 * 1024)
                rest += len(received)
                acked, rest = acked + rest // RESPONSE_BYTES, rest % RESPONSE_BYTES
                while times and times[0][0] <= acked:
                    self.latencies.append(now - times.popleft()[1])
                allowed = acked + self._outstanding
        return time.perf_counter() - started

    def close(self) -> None:
        self._socket.close()


def measure(address: tuple[str, int], pid: int, arguments: argparse.Namespace) -> None:
    ledger_id = int(time.time() * 1000)
    for outstanding in arguments.outstanding:
        count = arguments.adds if outstanding > 1 else max(arguments.adds // 50, 1)
        for _ in range(arguments.rounds):
            ledger_id += 1
            data = frames(ledger_id, arguments.size, count)
            load = Load(address, outstanding)
            before = cpu(pid)
            seconds = load.run(data, count)
            spent = cpu(pid) - before
            load.close()
            largest = (ledger_id, count)
            found = sorted(load.latencies)
            print(
                f"{outstanding:5d} outstanding {count / seconds / 1000:8.2f} k/s"
                f" {1e6 * spent / count:8.2f} us CPU an add"
                f"   p50 {1000 * found[len(found) // 2]:6.2f} ms"
                f" p99 {1000 * found[len(found) * 99 // 100]:6.2f} ms"
            )
    for _ in range(arguments.rounds):
        read_all(address, pid, *largest)
    print(f"RSS {resident_mb(pid)} MB")


def read_all(address: tuple[str, int], pid: int, ledger_id: int, count: int) -> None:
    """Read a ledger in order, a batch of up to 1 MiB after the other."""
    with socket.create_connection(address) as one, one.makefile("rb") as file:
        before, started, total, first = cpu(pid), time.perf_counter(), 0, 0
        while first < count:
            body = version2.pack_request(BatchRead(ledger_id, first, 0, 0, BATCH_BYTES))
            one.sendall(struct.pack(">I", len(body)) + body)
            (size,) = struct.unpack(">I", file.read(4))
            frame, at = file.read(size), BATCH_AT
            assert frame[4:8] == bytes(4), frame[:24].hex()
            while at < size:
                at += 4 + int.from_bytes(frame[at : at + 4], "big")
                first += 1
            total += size
        seconds, megabytes = time.perf_counter() - started, total / 1e6
        print(
            f"batched reads     {megabytes / seconds:8.0f} MB/s"
            f" {1000 * (cpu(pid) - before) / megabytes:8.2f} ms CPU a MB"
        )


def main(arguments: argparse.Namespace) -> None:
    if arguments.address:
        host, _, port = arguments.address.rpartition(":")
        measure((host, int(port)), arguments.pid, arguments)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        ready = Path(folder) / "ready"
        program = Path(sys.executable).with_name("magnetar")
        words = ("--data-dir", f"{folder}/data", "--port", "0", "--bookie-id", "bench")
        more = ("--ready-file", str(ready), "--log-level", "warning")
        with subprocess.Popen([program, "bookie", *words, *more]) as process:
            while not ready.exists():
                assert process.poll() is None
            host, _, port = json.loads(ready.read_text())["bookie"].rpartition(":")
            print(f"RSS {resident_mb(process.pid)} MB idle")
            measure((host, int(port)), process.pid, arguments)
            process.terminate()
            started = time.perf_counter()
            process.wait()
            print(f"stopped in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--outstanding", type=int, nargs="+", default=[1, 32, 512])
    parser.add_argument("--adds", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--address", default="")
    parser.add_argument("--pid", type=int, default=0)
    parser.add_argument("--directory", type=Path, default=None)
    main(parser.parse_args())
