"""Floods of a bookie that serves BookKeeper's clients: its memory stays bounded for all connections
together, and who behaves is served.
"""

from __future__ import annotations

import socket
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
from magnetar.bookie.requests.tests.peers import KEY, add
from magnetar.bookie.rpc import version2, version3
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    Added,
    BatchRead,
    BookieMessage,
    Read,
    ReadEntry,
    ReadLac,
    Status,
)

PEERS = 100
MANY = 300
SECONDS = 4.0
WAIT_SECONDS_MAX = 3.0
"""For who behaves, on a machine that the flood keeps busy, too."""
TURN_SECONDS_MAX = 6.0
"""Until those who hold the memory are closed, after two seconds; that is looked at each second."""
NEXT_TURN_BUT_ONE_SECONDS_MAX = 2 * (2.0 + 1.0) + WAIT_SECONDS_MAX
"""What is promised to who is new among others who ask for the same (`core/link/memory/claims.py`):
if some of them came later, their turn is before its own.
"""
LARGE, SMALL = b"z" * MIB, b"z"
LARGEST = b"z" * (5 * MIB - 300)


class Flooded:
    """What a flood does to a bookie: its memory, and how long an add and a read take meanwhile."""

    def __init__(self, bookie: Process) -> None:
        self.bookie = bookie
        self.pid = bookie.process.pid
        self._next = 0
        self.answers = 0
        self.slowest = self.slowest_recovery = 0.0

    def works(self, payload: bytes = SMALL) -> None:
        begun, number = time.monotonic(), self._next
        self._next += 1
        busy = Added(Status.TOO_MANY_REQUESTS, 1, number)
        while (answer := self.bookie.ask(add(1, number, payload))) == busy:
            # a slow sync at the wrong moment: clients ask again, and that counts as time
            assert time.monotonic() - begun < WAIT_SECONDS_MAX
        assert answer == Added(Status.OK, 1, number)
        found = self.bookie.ask(Read(1, number))
        assert isinstance(found, ReadEntry)
        assert found.status is Status.OK
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def recovers(self) -> None:
        """Read the last of the largest entries, as a recovery does."""
        begun = time.monotonic()
        found = self.bookie.ask(Read(2, LAST_ENTRY, KEY, fence=True, high_priority=True))
        assert isinstance(found, ReadEntry)
        assert found.status is Status.OK
        self.slowest_recovery = max(self.slowest_recovery, time.monotonic() - begun)

    def flood(self, ask: Ask, *, reads: bool, count: int = PEERS) -> Highest:
        highest = Highest(self)
        assert self.bookie.socket is not None
        host, port = self.bookie.socket.getpeername()
        with ExitStack() as stack:
            peers = [
                Asking(f"bookie://{host}:{port}", number, ask, reads=reads)
                for number in range(count)
            ]
            for peer in peers:
                stack.callback(peer.socket.close)
                if not reads:  # nor should its system receive much
                    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
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


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Flooded]:
    """With the largest entries in ledger 2, and many smaller ones in ledger 3, all on the disk."""
    with running(tmp_path) as bookie:
        for i in range(4):
            assert bookie.ask(add(2, i, LARGEST, lac=i - 1)) == Added(Status.OK, 2, i)
        for i in range(1500):
            assert bookie.ask(add(3, i, b"y" * 5000, lac=i - 1)) == Added(Status.OK, 3, i)
    with running(tmp_path) as bookie:
        yield Flooded(bookie)


def framed_in_version_3(request: BookieMessage) -> bytes:
    body = version3.pack_request(1, request)
    return struct.pack(">I", len(body)) + body


PIGGYBACK = Read(2, LAST_ENTRY, previous_lac=1, timeout_ms=60_000, piggyback=True)
READS = {
    "entries": framed(Read(2, 0)),
    "preferred": framed(Read(2, 0, high_priority=True)),
    "fences": framed(Read(2, 0, KEY, fence=True, high_priority=True)),
    "batches": framed(BatchRead(3, 0, 7, 2**31 - 1, 2**62)),
    "a batch of one": framed(BatchRead(2, 0, 7, 1, 2**62)),
    "last entries": framed_in_version_3(ReadLac(2)),
    "long polls": framed_in_version_3(PIGGYBACK),
}


@pytest.mark.parametrize("asked", READS.values(), ids=READS)
def test_large_responses_that_nobody_receives(full, asked) -> None:
    """Who reads what is small, and a recovery, do not wait for them, though new to this bookie.

    If they say that they recover as well, the recovery waits for its turn.
    """
    works = full.works

    def works_and_recovers() -> None:
        works()
        full.recovers()

    full.works = works_and_recovers
    several = asked * 20
    highest = full.flood(lambda number, turn: b"" if turn else several, reads=False, count=MANY)
    assert full.slowest < WAIT_SECONDS_MAX
    same = asked == READS["fences"]
    assert full.slowest_recovery < (NEXT_TURN_BUT_ONE_SECONDS_MAX if same else WAIT_SECONDS_MAX)
    assert highest.grown < BUDGET, f"{highest.grown / MIB:.0f} MiB"


def test_who_has_received_large_entries_has_more_beside_those_who_do_not(full) -> None:
    asked = framed(Read(2, 0)) * 20

    def reads_one() -> None:
        begun = time.monotonic()
        found = full.bookie.ask(Read(2, 1))
        assert isinstance(found, ReadEntry)
        assert found.status is Status.OK
        full.slowest = max(full.slowest, time.monotonic() - begun)

    full.works = reads_one
    reads_one()
    full.flood(lambda number, turn: b"" if turn else asked, reads=False, count=MANY)
    assert full.slowest < WAIT_SECONDS_MAX


def test_who_is_new_has_a_large_entry_beside_those_who_receive_nothing(full) -> None:
    """Its connection has shown nothing of it yet, as none of theirs has."""
    asked = framed(Read(2, 0)) * 20

    def reads_one() -> None:
        begun = time.monotonic()
        with full.bookie.socket:
            full.bookie.socket = full.bookie.another_connection()
        found = full.bookie.ask(Read(2, 1))
        assert isinstance(found, ReadEntry)
        assert found.status is Status.OK
        full.slowest = max(full.slowest, time.monotonic() - begun)

    full.works = reads_one
    full.flood(lambda number, turn: b"" if turn else asked, reads=False, count=MANY)
    assert full.slowest < TURN_SECONDS_MAX
