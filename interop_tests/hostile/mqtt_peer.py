"""A client of MQTT on a bare socket, and how those fare who are beside it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Self

import pulsar

from interop_tests.hostile.conftest import MIB
from interop_tests.hostile.flood import WAIT_SECONDS_MAX
from interop_tests.hostile.test_memory import Highest, Steady
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import Received

SECONDS = 20.0


def address(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].removesuffix("/mqtt").rpartition(":")
    return host, int(port)


class MqttPeer:
    """See the module's docstring. It acknowledges nothing by itself."""

    def __init__(
        self, server: Any, version: int = peer.V5, *, receive_bytes: int = 0, source: str = ""
    ) -> None:
        """`receive_bytes`: how much the system takes for this peer while it does not read;
        `source`: the address that it comes from.
        """
        self.version, self.server = version, server
        self.socket = socket.socket()
        self.socket.settimeout(SECONDS)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.bind((source, 0))
        self.socket.connect(address(server.mqtt_url))
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, *packets: bytes) -> Self:
        """Sends it all; that the server closes meanwhile is no error here."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(b"".join(packets))
        return self

    def try_to_say(self, data: bytes, seconds: float = 0.1) -> int:
        """Sends until the server reads no more; returns how much it took."""
        self.socket.settimeout(seconds)
        view, sent = memoryview(data), 0
        try:
            with suppress(OSError):
                while sent < len(data):
                    sent += self.socket.send(view[sent : sent + MIB])
        finally:
            self.socket.settimeout(SECONDS)
        return sent

    def connect(self, client_id: str = "", **options: Any) -> Received:
        self.say(peer.connect(client_id, version=self.version, **options))
        return self.take()

    def connected(self, client_id: str = "", **options: Any) -> Self:
        connack = self.connect(client_id, **options)
        assert (connack.kind, connack.reasons) == ("CONNACK", (0,))
        return self

    def take(self) -> Received:
        """The next packet."""
        while not (size := self._size()) or len(self._held) < size:
            data = self.socket.recv(65_536)
            assert data, "the server has closed the connection"
            self._held += data
        data, self._held = self._held[:size], self._held[size:]
        return peer.parse([data], self.version)[0]

    def take_until(self, kind: str) -> Received:
        while (found := self.take()).kind != kind:
            continue
        return found

    def ends(self, *, at: str = "") -> list[Received]:
        """What comes until the server closes the connection, or up to a packet of that kind."""
        found: list[Received] = []
        while not (found and found[-1].kind == at):
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return found  # it closed with something of ours unread
            if not data:
                return found
            self._held += data
            found += self._whole()
        return found

    def _whole(self) -> list[Received]:
        """The packets that are complete."""
        found: list[Received] = []
        begin, held = 0, self._held
        while (size := self._size(begin)) and len(held) >= begin + size:
            found += peer.parse([held[begin : begin + size]], self.version)
            begin += size
        self._held = held[begin:]
        return found

    def skim(self) -> None:
        """Read what is there, and forget it."""
        self._held = b""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while self.socket.recv(MIB):
                continue
        self.socket.settimeout(SECONDS)

    def _size(self, begin: int = 0) -> int:
        """The size of a packet; 0 if its length is not there yet."""
        value = shift = 0
        for at, byte in enumerate(self._held[begin + 1 : begin + 5]):
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return 2 + at + value
        return 0


class Neighbours:
    """A client of each protocol that sends to itself, all the time."""

    def __init__(self, server: Any, stack: ExitStack) -> None:
        self._kafka = Steady(server)
        stack.callback(self._kafka.close)
        client = pulsar.Client(
            server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        stack.callback(client.shutdown)
        self._consumer = client.subscribe("neighbour", "s")
        self._producer = client.create_producer("neighbour")
        self._mqtt = stack.enter_context(MqttPeer(server, peer.V3)).connected("neighbour")
        self._mqtt.say(peer.subscribe(("neighbour/#", 1)))
        assert self._mqtt.take().reasons == (1,)

    def slowest_of(self, count: int) -> float:
        """Seconds from a message until it is received, at most."""
        slowest = self._kafka.slowest_of(count)
        for number in range(count):
            for exchange in (self._by_pulsar, self._by_mqtt):
                begun = time.monotonic()
                exchange(b"%d" % number)
                slowest = max(slowest, time.monotonic() - begun)
        return slowest

    def _by_pulsar(self, payload: bytes) -> None:
        self._producer.send(payload)
        message = self._consumer.receive(int(1000 * SECONDS))
        assert message.data() == payload
        self._consumer.acknowledge(message)

    def _by_mqtt(self, payload: bytes) -> None:
        self._mqtt.say(peer.publish("neighbour/x", payload, qos=1, number=1))
        received = {one.kind: one for one in (self._mqtt.take(), self._mqtt.take())}
        assert received["PUBLISH"].payload == payload
        assert received["PUBACK"].number == 1
        self._mqtt.say(peer.acknowledge("PUBACK", received["PUBLISH"].number))


class Watch:
    """The memory of a server, and how long its other clients wait, while peers do their worst."""

    def __init__(self, server: Any, stack: ExitStack) -> None:
        self._neighbours = Neighbours(server, stack)
        self._highest = Highest(server)
        self.slowest = 0.0

    def look(self) -> None:
        self._highest.look()
        self.slowest = max(self.slowest, self._neighbours.slowest_of(1))
        self._highest.look()

    def look_for(self, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            meanwhile()
            self.look()

    def judge(self, bytes_max: int) -> None:
        """The server has not grown by more, and nobody has waited for long."""
        self.look()
        assert self.slowest < WAIT_SECONDS_MAX, f"{self.slowest:.1f} s"
        grown = self._highest.grown
        assert grown < bytes_max, f"{grown / MIB:.0f} MiB of {bytes_max / MIB:.0f}"
