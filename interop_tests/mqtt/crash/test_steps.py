"""kill -9 after each step of QoS 1 and 2: nothing is lost, and nothing of QoS 2 comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import magnetar

from .device import Device, crash, stored, watch

pytestmark = pytest.mark.parametrize("version", [4, 5])


@pytest.fixture
def server() -> Iterator[Any]:
    with magnetar.standalone() as started:
        yield started


def test_a_publisher_of_qos_1(server, version):
    watch(server)
    with Device(server, "p", version) as device:
        device.publish(b"0", 1, 1)
        device.hear("PUBACK", 1)
    crash(server)
    assert stored(server) == [b"0"]


def test_a_publisher_of_qos_2_whose_pubrec_is_lost(server, version):
    watch(server)
    with Device(server, "p", version) as device:
        device.publish(b"0", 2, 1)
        device.hear("PUBREC", 1)
    crash(server)
    with Device(server, "p", version) as device:
        assert device.resumed
        device.publish(b"0", 2, 1, dup=True)
        device.hear("PUBREC", 1)
        device.acknowledge("PUBREL", 1)
        device.hear("PUBCOMP", 1)
    assert stored(server) == [b"0"]


def test_a_publisher_of_qos_2_whose_pubcomp_is_lost(server, version):
    watch(server)
    with Device(server, "p", version) as device:
        device.publish(b"0", 2, 1)
        device.hear("PUBREC", 1)
        device.acknowledge("PUBREL", 1)
        device.hear("PUBCOMP", 1)
    crash(server)
    with Device(server, "p", version) as device:
        device.acknowledge("PUBREL", 1)
        device.hear("PUBCOMP", 1)
        device.publish(b"1", 2, 1)  # the identifier is free
        device.hear("PUBREC", 1)
    assert stored(server) == [b"0", b"1"]


def publish(server: Any, version: int, count: int, qos: int) -> None:
    """So many messages of a client without a session."""
    with Device(server, "writer", version, clean=True) as writer:
        for number in range(1, count + 1):
            writer.publish(b"%d" % number, qos, number)
            writer.hear("PUBACK" if qos == 1 else "PUBREC", number)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_subscriber_that_has_acknowledged_nothing(server, version, qos):
    with Device(server, "s", version) as device:
        device.subscribe("t", qos)
        publish(server, version, 5, qos)
        sent = [device.take() for _ in range(5)]
    crash(server)
    with Device(server, "s", version) as device:
        assert device.resumed
        again = [device.take() for _ in range(5)]
        assert [(one.number, one.payload) for one in again] == [
            (one.number, one.payload) for one in sent
        ]
        assert all(one.dup and one.qos == qos for one in again)


@pytest.mark.parametrize("step", ["PUBREL is lost", "PUBCOMP is lost", "PUBCOMP is sent"])
def test_a_subscriber_of_qos_2(server, version, step):
    with Device(server, "s", version) as device:
        device.subscribe("t", 2)
        publish(server, version, 2, 2)
        first, second = device.take(), device.take()
        device.acknowledge("PUBREC", first.number)
        device.hear("PUBREL", first.number)
        if step == "PUBCOMP is sent":
            device.acknowledge("PUBCOMP", first.number)
            assert device.take_until_ping() == []
    crash(server)
    with Device(server, "s", version) as device:
        again = device.take_until_ping()
        while len(again) < 2 and not any(one.kind == "PUBLISH" for one in again):
            again += device.take_until_ping()
        released = [one for one in again if one.kind == "PUBREL"]
        assert [one.number for one in released] in ([first.number], [])
        if step != "PUBCOMP is sent":
            assert released, "the exchange goes on where it was"
        published = [one for one in again if one.kind == "PUBLISH"]
        assert [(one.number, one.payload, one.dup) for one in published] == [
            (second.number, b"2", True)
        ]


def test_the_members_of_a_shared_subscription(server, version):
    """What they have acknowledged does not come again, once that is stored; all else does."""
    with Device(server, "s", version) as device:
        device.subscribe("$share/g/t", 1)
        publish(server, version, 5, 1)
        for _ in range(5):
            device.take()
    crash(server)
    with Device(server, "s", version) as device:
        assert device.resumed
        found = set()
        while len(found) < 5:
            packet = device.take()
            if packet.kind == "PUBLISH":
                found.add(packet.payload)
                device.acknowledge("PUBACK", packet.number)
        assert found == {b"1", b"2", b"3", b"4", b"5"}
