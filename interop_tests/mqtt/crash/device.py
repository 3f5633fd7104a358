"""A client written by hand (`wire/mqtt/tests/peer.py`), because only so it stops at each step."""

from __future__ import annotations

import socket
from struct import pack
from typing import Any, Self

from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, Received

SECONDS = 20.0
LASTS = b"\x11" + pack(">I", 100)
"""Session Expiry Interval of 5.0."""


class Closed(ConnectionError):
    """The server has closed the connection, or has been killed."""


class Device:
    """A client that sends what it is told, and acknowledges nothing by itself."""

    def __init__(
        self, server: Any, client_id: str, version: int = V3, *, clean: bool = False
    ) -> None:
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), SECONDS)
        self.version = version
        self._held = b""
        properties = LASTS if version == V5 and not clean else b""
        try:
            self.say(peer.connect(client_id, version=version, clean=clean, properties=properties))
            connack = self.take()
            assert connack.reasons == (0,)
        except BaseException:
            self.socket.close()
            raise
        self.resumed = bool(connack.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def publish(self, payload: bytes, qos: int, number: int, *, dup: bool = False) -> None:
        """PUBLISH to the topic `t`."""
        self.say(peer.publish("t", payload, qos=qos, number=number, dup=dup, version=self.version))

    def subscribe(self, name: str, qos: int) -> None:
        self.say(peer.subscribe((name, qos), version=self.version))
        assert self.take().reasons == (qos,)

    def acknowledge(self, kind: str, number: int) -> None:
        self.say(peer.acknowledge(kind, number))

    def take(self) -> Received:
        """The next packet."""
        while True:
            size = self._size()
            if size and len(self._held) >= size:
                data, self._held = self._held[:size], self._held[size:]
                return peer.parse([data], self.version)[0]
            data = self.socket.recv(65_536)
            if not data:
                raise Closed
            self._held += data

    def hear(self, kind: str, number: int) -> None:
        """Take an acknowledgement."""
        packet = self.take()
        assert (packet.kind, packet.number) == (kind, number)

    def _size(self) -> int:
        value = shift = 0
        for at, byte in enumerate(self._held[1:5]):
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return 2 + at + value
        return 0

    def take_until_ping(self) -> list[Received]:
        """Everything that comes before the answer to a ping."""
        self.say(peer.PINGREQ)
        found = []
        while (packet := self.take()).kind != "PINGRESP":
            found.append(packet)
        return found


def crash(server: Any) -> None:
    server.kill()
    server.restart()


def watch(server: Any) -> None:
    """Have a session that gets everything in the topic `t` from now on."""
    with Device(server, "witness") as witness:
        witness.subscribe("t", 1)


def stored(server: Any) -> list[bytes]:
    """What has been stored in the topic `t` since the last time."""
    with Device(server, "last") as writer:
        writer.publish(b"last", 1, 1)
        writer.hear("PUBACK", 1)
    with Device(server, "witness") as witness:
        found: list[bytes] = []
        while found[-1:] != [b"last"]:
            packet = witness.take()
            found.append(packet.payload)
            witness.acknowledge("PUBACK", packet.number)
        return found[:-1]
