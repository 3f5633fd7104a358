"""Many peers that ask without end, and how a well-behaved client fares beside them."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.test_memory import FEW_SECONDS, Highest, Steady

FLOOD_SECONDS = 4.0
WAIT_SECONDS_MAX = 3.0
"""For a well-behaved client, on a machine that the flood keeps busy, too."""

Ask = Callable[[int, int], bytes]
"""The next requests of a peer: of its number, and how often it was asked before."""


class Asking:
    """A peer that asks without end."""

    def __init__(self, url: str, number: int, ask: Ask, *, reads: bool) -> None:
        host, _, port = url.rpartition("/")[2].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), FEW_SECONDS)
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

    def _count(self, received: bytes) -> None:
        while len(received) >= 4 and (end := 4 + int.from_bytes(received[:4])) <= len(received):
            self.answers += 1
            received = received[end:]
        self._heard = received


class Flood:
    """What came of it."""

    def __init__(self, server, url: str, count: int, ask: Ask, *, reads: bool = True) -> None:
        highest = Highest(server)
        self.slowest = 0.0
        with ExitStack() as stack:
            steady = Steady(server)
            stack.callback(steady.close)
            peers = []
            for number in range(count):
                peers.append(Asking(url, number, ask, reads=reads))
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
