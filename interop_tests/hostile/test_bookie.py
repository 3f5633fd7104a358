"""Floods of a bookie that serves BookKeeper's clients: its memory stays bounded for all connections
together, and who behaves is served.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop_tests.crash.test_bookie import Process, running
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.flood import Ask, Asking
from interop_tests.hostile.test_memory import BUDGET, Highest, comes_back
from magnetar.bookie.requests.tests.peers import add
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Added, BookieMessage, Read, ReadEntry, Status

PEERS = 100
SECONDS = 4.0
WAIT_SECONDS_MAX = 3.0
"""For who behaves, on a machine that the flood keeps busy, too."""
LARGE, SMALL = b"z" * MIB, b"z"


class Flooded:
    """What a flood does to a bookie: its memory, and how long an add and a read take meanwhile."""

    def __init__(self, bookie: Process) -> None:
        self.bookie = bookie
        self.pid = bookie.process.pid
        self._next = 0
        self.answers = 0
        self.slowest = 0.0

    def works(self, payload: bytes = SMALL) -> None:
        begun, number = time.monotonic(), self._next
        self._next += 1
        assert self.bookie.ask(add(1, number, payload)) == Added(Status.OK, 1, number)
        found = self.bookie.ask(Read(1, number))
        assert isinstance(found, ReadEntry)
        assert found.status is Status.OK
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def flood(self, ask: Ask, *, reads: bool) -> Highest:
        highest = Highest(self)
        assert self.bookie.socket is not None
        host, port = self.bookie.socket.getpeername()
        with ExitStack() as stack:
            peers = [
                Asking(f"bookie://{host}:{port}", number, ask, reads=reads)
                for number in range(PEERS)
            ]
            for peer in peers:
                stack.callback(peer.socket.close)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for peer in peers:
                    peer.go_on()
                self.works()
                highest.look()
            self.answers = sum(peer.answers for peer in peers)
        self.works()
        return highest


@pytest.fixture
def flooded(tmp_path: Path) -> Iterator[Flooded]:
    with running(tmp_path) as bookie:
        found = Flooded(bookie)
        found.works(LARGE)  # one that reads, which is where memory goes first (`core/link/memory`)
        yield found


def framed(request: BookieMessage) -> bytes:
    body = version2.pack_request(request)
    return struct.pack(">I", len(body)) + body


def adds(payload: bytes, count: int) -> Ask:
    """Of a ledger for each peer."""

    def ask(number: int, turn: int) -> bytes:
        first = turn * count
        return b"".join(framed(add(10 + number, first + i, payload)) for i in range(count))

    return ask


@pytest.mark.parametrize(("payload", "count"), [(SMALL, 1000), (LARGE, 1)], ids=["small", "large"])
def test_adds_beyond_what_the_disk_takes(flooded, payload, count) -> None:
    highest = flooded.flood(adds(payload, count), reads=True)
    assert flooded.answers > PEERS
    assert flooded.slowest < WAIT_SECONDS_MAX
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(flooded, highest.idle)


def test_adds_whose_responses_nobody_receives(flooded) -> None:
    highest = flooded.flood(adds(SMALL, 1000), reads=False)
    assert flooded.slowest < WAIT_SECONDS_MAX
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"


def test_reads_that_nobody_receives(flooded) -> None:
    for i in range(20):
        assert flooded.bookie.ask(add(2, i, LARGE)) == Added(Status.OK, 2, i)
    asked = framed(Read(2, 0)) * 1000
    highest = flooded.flood(lambda number, turn: asked, reads=False)
    assert flooded.slowest < WAIT_SECONDS_MAX
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"
    comes_back(flooded, highest.idle)
