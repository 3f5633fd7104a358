"""A network in virtual time, between hosts with names, that loses connections and not bytes.

A connection is two streams. What is sent on one arrives in order, in pieces of any size, each after
a while; streams of different connections have nothing to do with each other. What may go wrong:

    partition    what one host sends to another waits until it is healed, and so does a new
                 connection; nobody is told
    refusal      a host refuses new connections of another one
    reset        a connection ends at both sides, each at its own time; what is on its way is lost
                 if it comes later
    cut          a host is gone: its side of each connection is dead. Peers hear of it, or of a
                 `silent` cut nothing: theirs are half-open
    lag          what a host sends takes longer; it comes in order, and nothing is lost
    freezing     is the hosts' own (`timeline.py`): what arrives waits

Invariants: a stream delivers a prefix of what was sent, or all; nothing arrives at a connection
that was closed on that side.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import trio
from msgspec import Struct

from magnetar.core.testing.simulation.timeline import HostTimeline, Timeline

WINDOW_BYTES: Final = 32 * 1024
"""What is on its way in one stream, at most."""


class Luck(Protocol):
    """Chance, as in `random.Random`."""

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...

    def expovariate(self, rate: float, /) -> float: ...


class Weather(Struct):
    """How bad the network is now."""

    seconds: float = 0.001
    """What a message takes on the average."""
    spike: float = 0.0
    """How often one takes a hundred times as long."""


class Stream:
    """What one side of a connection sends."""

    def __init__(
        self, network: VirtualNetwork, sender: ConnectionEnd, receiver: ConnectionEnd
    ) -> None:
        self._network = network
        self._sender = sender
        self._receiver = receiver
        self._last = 0.0
        self._on_way: deque[bytes] = deque()
        self._waiting: deque[bytes] = deque()
        """What has come to a partition."""
        self.bytes_on_way = 0

    def send(self, data: bytes) -> None:
        """Have it arrive, as one piece or as two; nothing stands for the end."""
        if not self._receiver.alive:
            return  # nobody answers: the connection is half-open
        cut = self._network.chance.randrange(len(data) + 1) if len(data) > 1 else 0
        for piece in filter(None, (data[:cut], data[cut:])) if data else (b"",):
            now = trio.current_time()
            lag = self._network.lags.get(self._sender.name, 0.0)
            self._last = max(self._last, now + lag + self._network.latency())
            self.bytes_on_way += len(piece)
            self._on_way.append(piece)
            self._receiver.host.call_in(self._last - now, self._arrive)

    def _arrive(self) -> None:
        piece = self._on_way.popleft()
        if self._waiting or self._network.is_cut(self._sender.name, self._receiver.name):
            self._waiting.append(piece)
            self._network.held[self] = None
        else:
            self._deliver(piece)

    def _deliver(self, piece: bytes) -> None:
        self.bytes_on_way -= len(piece)
        self._receiver.take(piece)
        self._sender.relieved()

    def release(self) -> bool:
        """Deliver what has waited, if the partition is healed; whether it is."""
        if self._network.is_cut(self._sender.name, self._receiver.name):
            return False
        while self._waiting:
            self._deliver(self._waiting.popleft())
        return True


class ConnectionEnd:
    """One side of a connection: a `NetworkConnection` for a client; a server sets `received`, which
    is called with each piece, and with nothing at the end.
    """

    def __init__(self, network: VirtualNetwork, name: str, host: HostTimeline) -> None:
        self.name = name
        self.host = host
        self.alive = True
        self.peer: ConnectionEnd
        self.received: Callable[[bytes], None] | None = None
        self._network = network
        self._stream: Stream
        self._buffer = bytearray()
        self._ended = self._reset = False
        self._news = trio.Event()

    def join(self, peer: ConnectionEnd) -> None:
        self.peer = peer
        self._stream = Stream(self._network, self, peer)

    # -- arriving -----------------------------------------------------------------------------

    def take(self, piece: bytes) -> None:
        """Something has arrived."""
        if not self.alive:
            return
        if not piece:
            self._ended = True
        if self.received is not None:
            self.received(piece)
            return
        self._buffer += piece
        self._news.set()

    def reset(self) -> None:
        """The peer is gone."""
        if not self.alive:
            return
        self.alive = False
        self._reset = True
        self._network.ends.pop(self, None)
        if self.received is not None:
            self.received(b"")
        self._news.set()

    def relieved(self) -> None:
        self._news.set()

    # -- the port -----------------------------------------------------------------------------

    def send_at_once(self, data: bytes | memoryview) -> int:
        self._check()
        room = WINDOW_BYTES - self._stream.bytes_on_way
        piece = bytes(data[: max(room, 0)])
        if piece:
            self._stream.send(piece)
        return len(piece)

    def send_all(self, data: bytes) -> None:
        """Send everything, whatever is on its way already."""
        if self.alive:
            self._stream.send(data)

    async def wait_sendable(self) -> None:
        while self._stream.bytes_on_way >= WINDOW_BYTES:
            self._check()
            self._news = trio.Event()
            await self._news.wait()
        self._check()

    async def deliver(self, size_max: int, take: Callable[[bytes], None]) -> None:
        while data := await self.receive(size_max):
            take(data)

    async def receive(self, size_max: int) -> bytes:
        while not self._buffer:
            self._check()
            if self._ended:
                return b""
            self._news = trio.Event()
            await self._news.wait()
        self._check()
        piece = bytes(self._buffer[:size_max])
        del self._buffer[:size_max]
        return piece

    def close(self) -> None:
        """End it; the peer hears of it behind what was sent."""
        if self.alive:
            self._stream.send(b"")
            self.vanish()

    def vanish(self) -> None:
        """End it; nobody hears of it."""
        self.alive = False
        self._network.ends.pop(self, None)
        self._news.set()

    def _check(self) -> None:
        if self._reset:
            raise ConnectionResetError(errno.ECONNRESET, "the connection was reset")
        if not self.alive:
            raise OSError(errno.EBADF, "the connection was closed")


class HostNetwork:
    """The `Network` as one host sees it."""

    def __init__(self, network: VirtualNetwork, name: str, host: HostTimeline) -> None:
        self._network = network
        self._name = name
        self._host = host

    async def connect(self, host: str, port: int) -> ConnectionEnd:
        return await self._network.connect(self._name, self._host, host)


Accept = Callable[[ConnectionEnd], None]


class VirtualNetwork:
    """See the module's docstring."""

    def __init__(self, timeline: Timeline, chance: Luck) -> None:
        self.chance = chance
        self.weather = Weather()
        self.ends: dict[ConnectionEnd, None] = {}
        """Those that are open."""
        self.held: dict[Stream, None] = {}
        self.lags: dict[str, float] = {}
        """How much longer what a host sends takes, in seconds."""
        self._timeline = timeline
        self._listening: dict[str, tuple[HostTimeline, Accept]] = {}
        self._silent: set[str] = set()
        self._partitions: set[tuple[str, str]] = set()
        self._refusals: set[tuple[str, str]] = set()
        self._changed = trio.Event()

    def latency(self) -> float:
        seconds = self.chance.expovariate(1 / self.weather.seconds)
        if self.chance.random() < self.weather.spike:
            seconds *= 100
        return seconds

    # -- connecting ---------------------------------------------------------------------------

    def listen(self, name: str, host: HostTimeline, accept: Accept) -> None:
        """A server begins to accept connections on a host."""
        self._silent.discard(name)
        self._listening[name] = host, accept

    async def connect(self, name: str, host: HostTimeline, target: str) -> ConnectionEnd:
        await host.sleep(self.latency() + self.latency())
        while target in self._silent or self.is_cut(name, target) or self.is_cut(target, name):
            self._changed = trio.Event()
            await self._changed.wait()
        found = self._listening.get(target)
        if found is None or (name, target) in self._refusals:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")
        ours, theirs = ConnectionEnd(self, name, host), ConnectionEnd(self, target, found[0])
        ours.join(theirs)
        theirs.join(ours)
        self.ends |= {ours: None, theirs: None}
        found[1](theirs)
        return ours

    # -- what goes wrong ----------------------------------------------------------------------

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._partitions

    @property
    def partitions(self) -> list[tuple[str, str]]:
        """Who cannot send to whom."""
        return sorted(self._partitions)

    def partition(self, sender: str, receiver: str) -> None:
        """Let nothing pass in this direction."""
        self._partitions.add((sender, receiver))

    def heal(self, sender: str, receiver: str) -> None:
        self._partitions.discard((sender, receiver))
        for stream in list(self.held):
            if stream.release():
                del self.held[stream]
        self._changed.set()

    def refuse(self, sender: str, receiver: str) -> None:
        """Have new connections of a client refused."""
        self._refusals.add((sender, receiver))

    def allow(self, sender: str, receiver: str) -> None:
        self._refusals.discard((sender, receiver))

    def reset(self, end: ConnectionEnd) -> None:
        """End one connection at both sides."""
        self._timeline.call_in(self.latency(), end.reset)
        self._timeline.call_in(self.latency(), end.peer.reset)

    def cut(self, name: str, *, silent: bool = False) -> None:
        """A host is gone; until it listens again, connections to it are refused, or hang."""
        self._listening.pop(name, None)
        if silent:
            self._silent.add(name)
        for end in [end for end in self.ends if end.name == name]:
            end.vanish()
            if not silent:
                self._timeline.call_in(self.latency(), end.peer.reset)

    def revive(self, name: str) -> None:
        """A host that was cut silently answers again, though nobody listens yet: what is sent on an
        old connection is refused.
        """
        self._silent.discard(name)
        for end in [end for end in self.ends if end.peer.name == name and not end.peer.alive]:
            self._timeline.call_in(self.latency(), end.reset)
        self._changed.set()
