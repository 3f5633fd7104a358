"""kill -9 at each step of QoS 1 and 2: nothing is lost, and nothing of QoS 2 comes twice.

The client is written by hand (`wire/mqtt/tests/peer.py`), because only so it stops at each step.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, Self

import pytest

import magnetar
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import Received, acknowledge, connect, publish, subscribe

SECONDS = 20.0


class Device:
    """A client that sends what it is told, and acknowledges nothing by itself."""

    def __init__(self, server: Any, client_id: str, *, clean: bool = False) -> None:
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), SECONDS)
        self._held = b""
        try:
            self.say(connect(client_id, clean=clean))
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

    def take(self) -> Received:
        """The next packet."""
        while True:
            size = self._size()
            if size and len(self._held) >= size:
                data, self._held = self._held[:size], self._held[size:]
                return peer.parse([data])[0]
            data = self.socket.recv(65_536)
            assert data, "the server has closed the connection"
            self._held += data

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


@pytest.fixture
def server() -> Iterator[Any]:
    with magnetar.standalone() as started:
        yield started


def crash(server: Any) -> None:
    server.kill()
    server.restart()


def stored(server: Any) -> list[bytes]:
    """Everything in the topic `t`: a session that was there from the beginning gets it."""
    with Device(server, "last") as writer:
        writer.say(publish("t", b"last", qos=1, number=1))
        assert writer.take().kind == "PUBACK"
    with Device(server, "witness") as witness:
        found: list[bytes] = []
        while found[-1:] != [b"last"]:
            packet = witness.take()
            found.append(packet.payload)
            witness.say(acknowledge("PUBACK", packet.number))
        return found[:-1]


def watch(server: Any) -> None:
    with Device(server, "witness") as witness:
        witness.say(subscribe(("t", 1)))
        assert witness.take().reasons == (1,)


def test_a_publisher_of_qos_1(server):
    watch(server)
    with Device(server, "p") as device:
        device.say(publish("t", b"0", qos=1, number=1))
        assert device.take().kind == "PUBACK"
    crash(server)
    assert stored(server) == [b"0"]


def test_a_publisher_of_qos_2_whose_pubrec_is_lost(server):
    watch(server)
    with Device(server, "p") as device:
        device.say(publish("t", b"0", qos=2, number=1))
        assert device.take().kind == "PUBREC"
    crash(server)
    with Device(server, "p") as device:
        assert device.resumed
        device.say(publish("t", b"0", qos=2, number=1, dup=True))
        assert device.take()[:3] == ("PUBREC", 0, 1)
        device.say(acknowledge("PUBREL", 1))
        assert device.take()[:3] == ("PUBCOMP", 0, 1)
    assert stored(server) == [b"0"]


def test_a_publisher_of_qos_2_whose_pubcomp_is_lost(server):
    watch(server)
    with Device(server, "p") as device:
        device.say(publish("t", b"0", qos=2, number=1))
        assert device.take().kind == "PUBREC"
        device.say(acknowledge("PUBREL", 1))
        assert device.take().kind == "PUBCOMP"
    crash(server)
    with Device(server, "p") as device:
        device.say(acknowledge("PUBREL", 1))
        assert device.take()[:3] == ("PUBCOMP", 0, 1)
        device.say(publish("t", b"1", qos=2, number=1))  # the identifier is free
        assert device.take().kind == "PUBREC"
    assert stored(server) == [b"0", b"1"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_subscriber_that_has_acknowledged_nothing(server, qos):
    with Device(server, "s") as device:
        device.say(subscribe(("t", qos)))
        device.take()
        with Device(server, "p", clean=True) as writer:
            for number in range(1, 6):
                writer.say(publish("t", b"%d" % number, qos=qos, number=number))
                writer.take()
        sent = [device.take() for _ in range(5)]
    crash(server)
    with Device(server, "s") as device:
        assert device.resumed
        again = [device.take() for _ in range(5)]
        assert [(one.number, one.payload) for one in again] == [
            (one.number, one.payload) for one in sent
        ]
        assert all(one.dup and one.qos == qos for one in again)


@pytest.mark.parametrize("step", ["PUBREL is lost", "PUBCOMP is lost", "PUBCOMP is sent"])
def test_a_subscriber_of_qos_2(server, step):
    with Device(server, "s") as device:
        device.say(subscribe(("t", 2)))
        device.take()
        with Device(server, "p", clean=True) as writer:
            writer.say(publish("t", b"0", qos=2, number=1), publish("t", b"1", qos=2, number=2))
            writer.take(), writer.take()
        first, second = device.take(), device.take()
        device.say(acknowledge("PUBREC", first.number))
        assert device.take()[:3] == ("PUBREL", 2, first.number)
        if step == "PUBCOMP is sent":
            device.say(acknowledge("PUBCOMP", first.number))
            assert device.take_until_ping() == []
    crash(server)
    with Device(server, "s") as device:
        again = device.take_until_ping()
        while len(again) < 2 and not any(one.kind == "PUBLISH" for one in again):
            again += device.take_until_ping()
        released = [one for one in again if one.kind == "PUBREL"]
        assert [one.number for one in released] in ([first.number], [])
        if step != "PUBCOMP is sent":
            assert released, "the exchange goes on where it was"
        published = [one for one in again if one.kind == "PUBLISH"]
        assert [(one.number, one.payload, one.dup) for one in published] == [
            (second.number, b"1", True)
        ]


def test_the_members_of_a_shared_subscription(server):
    """What they have acknowledged does not come again, once that is stored; all else does."""
    with Device(server, "s") as device:
        device.say(subscribe(("$share/g/t", 1)))
        device.take()
        with Device(server, "p", clean=True) as writer:
            for number in range(1, 6):
                writer.say(publish("t", b"%d" % number, qos=1, number=number))
                writer.take()
        for _ in range(5):
            device.take()
    crash(server)
    with Device(server, "s") as device:
        assert device.resumed
        found = set()
        while len(found) < 5:
            packet = device.take()
            if packet.kind == "PUBLISH":
                found.add(packet.payload)
                device.say(acknowledge("PUBACK", packet.number))
        assert found == {b"1", b"2", b"3", b"4", b"5"}
