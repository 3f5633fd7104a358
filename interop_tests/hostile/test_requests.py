"""Floods of Pulsar requests: what is asked for and not given yet stays within the memory budget,
and those who behave notice little.

Peers here ask and ask, and read the answers or do not.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

import magnetar
from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.test_memory import BUDGET, FEW_SECONDS, Highest, Steady
from wire.pulsar.tests import peer

TOPIC = "persistent://public/default"
FLOOD_SECONDS = 6.0
FEW, MANY = 20, 300
"""Peers."""
ATTACHED_BYTES = 16 * 1024
"""What a consumer and its subscription take, with names of a kilobyte."""
WAIT_SECONDS_MAX = 3.0
"""For a well-behaved client, on a machine that the flood keeps busy, too."""

Ask = Callable[[int, int], bytes]
"""The next requests of a peer: of its number, and how often it was asked before."""


@pytest.fixture
def server():
    with magnetar.standalone() as server:
        yield server


class Asking:
    """A peer that asks without end."""

    def __init__(self, server, number: int, ask: Ask, *, reads: bool) -> None:
        host, _, port = server.pulsar_url.removeprefix("pulsar://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), FEW_SECONDS)
        self.socket.sendall(peer.connect())
        self.socket.setblocking(False)
        self._number, self._ask, self._reads = number, ask, reads
        self._turns = itertools.count()
        self._rest = memoryview(b"")
        self._heard = b""
        self.answers = 0

    def go_on(self) -> None:
        """Say as much as is taken, and hear what there is."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            for _ in range(4):
                if not self._rest:
                    self._rest = memoryview(self._ask(self._number, next(self._turns)))
                self._rest = self._rest[self.socket.send(self._rest) :]
        if self._reads:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self._count(self._heard + self.socket.recv(MIB))

    def _count(self, heard: bytes) -> None:
        while len(heard) >= 4 and (end := 4 + int.from_bytes(heard[:4])) <= len(heard):
            self.answers += 1
            heard = heard[end:]
        self._heard = heard


class Flood:
    """What came of it."""

    def __init__(self, server, count: int, ask: Ask, *, reads: bool) -> None:
        highest = Highest(server)
        self.slowest = 0.0
        with ExitStack() as stack:
            steady = Steady(server)
            stack.callback(steady.close)
            peers = []
            for number in range(count):
                peers.append(Asking(server, number, ask, reads=reads))
                stack.callback(peers[-1].socket.close)
            end = time.monotonic() + FLOOD_SECONDS
            while time.monotonic() < end:
                for one in peers:
                    one.go_on()
                highest.look()
                self.slowest = max(self.slowest, steady.slowest_of(1))
            highest.look()
            self.answers = sum(one.answers for one in peers)
            highest.look_for(1.0, lambda: steady.slowest_of(1))  # with all that was begun
        highest.look_for(2.0)  # and when they have gone
        self.grown = highest.grown

    def __str__(self) -> str:
        size = f"{self.grown / MIB:.0f} MiB"
        return f"{size}, {self.answers} answers, slowest {self.slowest:.1f} s"


def fifty(ask: Callable[[int, str], bytes]) -> Ask:
    """Requests in one go, each with its own id and another name of a kilobyte."""

    def some(number: int, turn: int) -> bytes:
        ids = range(50 * turn + 1, 50 * turn + 51)
        return b"".join(ask(each, f"{number}-{each}-" + "n" * 1_000) for each in ids)

    return some


def test_subscribing_without_end(server):
    @fifty
    def ask(number, name):
        return peer.subscribe(number, number, f"{TOPIC}/s", name)

    came = Flood(server, FEW, ask, reads=True)
    assert came.grown < BUDGET / 2 + came.answers * ATTACHED_BYTES, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_lookups_that_are_not_read(server):
    asked = b"".join(peer.lookup(number, f"{TOPIC}/looked-up") for number in range(3_000))
    came = Flood(server, MANY, lambda _number, _turn: asked, reads=False)
    assert came.grown < BUDGET / 2, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)


def test_lists_of_topics_that_are_not_read(server):
    url = f"{server.http_url}/admin/v2/persistent/public/default/{'t' * 150}/partitions"
    assert httpx.put(url, json=2_000, timeout=60).status_code == 204
    asked = b"".join(peer.topics_of_namespace(n, "public/default", mode=2) for n in range(2_000))
    came = Flood(server, MANY, lambda _number, _turn: asked, reads=False)
    assert came.grown < BUDGET, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)
