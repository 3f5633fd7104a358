"""Adds of version 2 to one bookie or to several, with a quorum, and batched reads of one.

Frames are made beforehand, so that the client costs little. An add is answered when `ack_quorum`
bookies have answered as many as that: each answers the adds of a ledger in their order.
Invariant: an answer that is not EOK ends the load with an error.
"""

import select
import socket
import struct
import time
from collections import deque
from typing import Final

from magnetar.bookie.format import digests, entries
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead

Address = tuple[str, int]

KEY: Final = digests.master_key(b"")
RESPONSE_BYTES: Final = 28
CODE_AT: Final = 8
"""In a response, behind the length and the header; four bytes, zero if all is well."""
BATCH_BYTES: Final = 1 << 20
BATCH_AT: Final = 32
"""Where entries begin in the response."""
SEND_BYTES: Final = 256 * 1024
HEAD: Final = struct.pack(">I", version2.header(version2.ADD)) + KEY


def frames(ledger_id: int, size: int, count: int) -> bytes:
    """The adds of one ledger; all have the same length."""
    run = entries.seal(ledger_id, 0, -1, 0, [bytes(size)] * count)
    length = struct.pack(">I", len(HEAD) + size + entries.OVERHEAD_BYTES)
    step = run.offsets[1]
    view = memoryview(run.blob)
    return b"".join(
        [length + HEAD + view[at + 4 : at + step] for at in range(0, count * step, step)]
    )


class Refused(Exception):
    """A bookie answered an add with an error."""


class Replica:
    """One connection: how much was sent, and how many adds were answered."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.sent = 0
        self.acked = 0
        self._rest = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, view: memoryview, end: int) -> None:
        self.sent += self.socket.send(view[self.sent : min(end, self.sent + SEND_BYTES)])

    def receive(self) -> None:
        received = self.socket.recv(SEND_BYTES)
        if not received:
            raise Refused("the bookie closed the connection")
        received = self._rest + received
        whole = len(received) // RESPONSE_BYTES
        self._rest = received[whole * RESPONSE_BYTES :]
        for place in range(CODE_AT, CODE_AT + 4):
            if any(received[place : whole * RESPONSE_BYTES : RESPONSE_BYTES]):
                raise Refused(received[:RESPONSE_BYTES].hex())
        self.acked += whole


class Load:
    """Keeps so many adds outstanding, until all are answered."""

    def __init__(self, addresses: list[Address], outstanding: int, ack_quorum: int = 1) -> None:
        self._outstanding = outstanding
        self._quorum = ack_quorum
        self._replicas = [Replica(address) for address in addresses]
        self.latencies: list[float] = []

    def _confirmed(self) -> int:
        return sorted(replica.acked for replica in self._replicas)[-self._quorum]

    def run(self, data: bytes, count: int) -> float:
        """Send all adds to all bookies, and wait for all answers; the seconds until the last add
        had its quorum.
        """
        view, step = memoryview(data), len(data) // count
        confirmed = pushed = 0
        times: deque[tuple[int, float]] = deque()
        started = ended = time.perf_counter()
        while min(replica.acked for replica in self._replicas) < count:
            end = min(confirmed + self._outstanding, count) * step
            behind = [replica for replica in self._replicas if replica.sent < end]
            readable, writable, _ = select.select(self._replicas, behind, [])
            now = time.perf_counter()
            for replica in writable:
                replica.send(view, end)
            most = max(replica.sent for replica in self._replicas) // step
            if most > pushed:
                pushed = most
                times.append((pushed, now))
            for replica in readable:
                replica.receive()
            if self._confirmed() > confirmed:
                confirmed, ended = self._confirmed(), now
            while times and times[0][0] <= confirmed:
                self.latencies.append(now - times.popleft()[1])
        return ended - started

    def close(self) -> None:
        for replica in self._replicas:
            replica.socket.close()


def read_all(address: Address, ledger_id: int, count: int) -> int:
    """Read a ledger in order, a batch of up to 1 MiB after the other; the bytes of it."""
    total = first = 0
    with socket.create_connection(address) as one, one.makefile("rb") as file:
        while first < count:
            body = version2.pack_request(BatchRead(ledger_id, first, 0, 0, BATCH_BYTES))
            one.sendall(struct.pack(">I", len(body)) + body)
            (size,) = struct.unpack(">I", file.read(4))
            frame, at = file.read(size), BATCH_AT
            if any(frame[4:8]):
                raise Refused(frame[:24].hex())
            while at < size:
                at += 4 + int.from_bytes(frame[at : at + 4], "big")
                first += 1
            total += size
    return total
