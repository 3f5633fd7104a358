"""The packets of one connection, in their order."""

from __future__ import annotations

import pytest

from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES, PAUSE_REQUESTS
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, connect, publish, subscribe


async def test_a_client_gets_what_another_publishes(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("a/+", 2))
    writer = await stage.connected("w")
    assert await writer.says(publish("a/1", b"zero")) == []
    (puback,) = await writer.says(publish("a/1", b"one", qos=1, number=7))
    assert (puback.kind, puback.number) == ("PUBACK", 7)
    zero, one = await reader.receive()
    assert (zero.topic, zero.payload, zero.qos) == ("a/1", b"zero", 0)
    assert (one.topic, one.payload, one.qos) == ("a/1", b"one", 1)


async def test_the_three_packets_of_qos_2(stage: Stage) -> None:
    """In both directions [MQTT-4.3.3-4], [MQTT-4.3.3-8], [MQTT-4.3.3-11]"""
    reader = await stage.subscribed("r", ("t", 2))
    writer = await stage.connected("w")
    (pubrec,) = await writer.says(publish("t", b"x", qos=2, number=5))
    assert (pubrec.kind, pubrec.number) == ("PUBREC", 5)
    (pubcomp,) = await writer.says(acknowledge("PUBREL", 5))
    assert (pubcomp.kind, pubcomp.number) == ("PUBCOMP", 5)
    (sent,) = await reader.receive()
    (pubrel,) = await reader.says(acknowledge("PUBREC", sent.number))
    assert (pubrel.kind, pubrel.flags, pubrel.number) == ("PUBREL", 2, sent.number)
    assert await reader.says(acknowledge("PUBCOMP", sent.number)) == []


async def test_packets_before_connack_wait(stage: Stage) -> None:
    """Clients need not wait for CONNACK (3.1.4), which comes first [MQTT-3.2.0-1 of 3.1.1]."""
    client = stage.stranger()
    answers = await client.says(
        connect("c"), subscribe(("t", 1), number=3), publish("t", b"x", qos=1, number=4),
        peer.PINGREQ,
    )  # fmt: skip
    kinds = [one.kind for one in answers]
    assert kinds[:2] == ["CONNACK", "SUBACK"]
    assert sorted(kinds[2:]) == ["PINGRESP", "PUBACK", "PUBLISH"]
    assert not client.line.paused & PAUSE_REQUESTS


async def test_what_waits_is_dropped_if_connect_is_refused(stage: Stage) -> None:
    """[MQTT-3.1.4-6]"""
    client = stage.stranger()
    answers = await client.says(connect("", clean=False), publish("t", b"x", retain=True))
    assert [(one.kind, one.reasons) for one in answers] == [("CONNACK", (2,))]
    reader = await stage.connected("r")
    assert [one.kind for one in await reader.says(subscribe(("t", 0)))] == ["SUBACK"]


@pytest.mark.parametrize("version", [peer.V3, V5])
async def test_a_second_connect(stage: Stage, version: int) -> None:
    """[MQTT-3.1.0-2]"""
    client = await stage.connected("c", version=version)
    answers = await client.says(connect("c", version=version))
    assert client.line.ending is not None
    expected = [("DISCONNECT", (0x82,))] if version == V5 else []
    assert [(one.kind, one.reasons) for one in answers] == expected


@pytest.mark.parametrize("version", [peer.V3, V5])
async def test_a_ping(stage: Stage, version: int) -> None:
    """[MQTT-3.12.4-1 of both]"""
    client = await stage.connected(version=version)
    assert [one.kind for one in await client.says(peer.PINGREQ, peer.PINGREQ)] == ["PINGRESP"] * 2


async def test_acknowledgements_of_unknown_identifiers(stage: Stage) -> None:
    client = await stage.connected("five", version=V5)
    (pubcomp,) = await client.says(acknowledge("PUBREL", 9))
    assert (pubcomp.kind, pubcomp.reasons) == ("PUBCOMP", (0x92,))
    (pubrel,) = await client.says(acknowledge("PUBREC", 9))
    assert (pubrel.kind, pubrel.reasons) == ("PUBREL", (0x92,))
    assert await client.says(acknowledge("PUBACK", 9), acknowledge("PUBCOMP", 9)) == []
    assert client.line.ending is None


async def test_pubrec_with_a_failure_ends_the_exchange(stage: Stage) -> None:
    """There is no PUBREL [MQTT-4.3.3-4], and the identifier is free again."""
    reader = await stage.subscribed("r", ("t", 2), version=V5)
    writer = await stage.connected("w")
    await writer.says(publish("t", b"x", qos=2, number=1))
    (sent,) = await reader.receive()
    assert await reader.says(acknowledge("PUBREC", sent.number, 0x97)) == []
    client = reader.session.client
    assert client is not None
    assert len(client.subscriber.ids) == 0


async def test_enhanced_authentication_was_not_begun(stage: Stage) -> None:
    client = await stage.connected("c", version=V5)
    method = b"\x15" + peer.text("X")
    auth = peer.frame(0xF0, b"\x19" + peer.block(method, V5))
    answers = await client.says(auth)
    assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x82,))]


async def test_a_silent_client_is_closed(stage: Stage) -> None:
    """[MQTT-3.1.2-22]: after one and a half times its interval."""
    client = await stage.connected("c", version=V5, keep_alive=10)
    await stage.forward(9)
    assert [one.kind for one in await client.says(peer.PINGREQ)] == ["PINGRESP"]
    await stage.forward(14)
    assert client.line.ending is None
    await stage.forward(2)
    assert client.line.ending == "the client is silent"
    assert [one.reasons for one in await client.receive()] == [(0x8D,)]


async def test_a_client_that_is_not_read_is_not_silent(stage: Stage) -> None:
    """What it sends waits in the socket, such as its pings while it is slowed down."""
    client = await stage.connected("c", keep_alive=10)
    client.line.pause(PAUSE_PUBLISHES)
    await stage.forward(60)
    assert client.line.ending is None
    client.line.resume(PAUSE_PUBLISHES)
    await stage.forward(14)
    assert client.line.ending is None
    await stage.forward(3)
    assert client.line.ending is not None


async def test_a_client_without_an_interval_may_be_silent(stage: Stage) -> None:
    client = await stage.connected("c")
    await stage.forward(100_000)
    assert client.line.ending is None


async def test_disconnect_with_another_expiry(stage: Stage) -> None:
    """(3.14.2.2.2) it cannot make a session last that ends with its connection."""
    expiry = b"\x11\0\0\0\x09"
    short = await stage.connected("short", version=V5)
    answers = await short.says(peer.disconnect(0, expiry))
    assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x82,))]
    long = await stage.connected("long", version=V5, properties=b"\x11\0\0\0\x60")
    assert await long.says(peer.disconnect(0, expiry)) == []
    await long.is_cut()
    record = await stage.services.sessions.records.read("long")
    assert record is not None
    assert record.expiry_seconds == 9


@pytest.mark.parametrize(("keep_alive", "probed"), [(0, True), (60, False)])
async def test_without_keep_alive_the_system_asks(
    stage: Stage, keep_alive: int, probed: bool
) -> None:
    client = await stage.connected(keep_alive=keep_alive)
    assert client.line.probed is probed


async def test_one_read_with_many_topics_that_have_no_log(stage: Stage) -> None:
    """Each is refused by itself, and they do not count against Python's limit of recursion."""
    writer = await stage.connected("w", version=V5)
    numbers = range(1, 1_001)
    packets = [publish(f"$SYS/{n}", qos=1, number=n, version=V5) for n in numbers]
    writer.feed(*packets, peer.PINGREQ)
    answers = []
    for _ in range(200):
        answers += await writer.receive()
        if len(answers) > len(numbers):
            break
    assert writer.line.ending is None
    assert [(one.kind, one.number) for one in answers[:-1]] == [("PUBACK", n) for n in numbers]
    assert all(one.reasons == (0x90,) for one in answers[:-1])
    assert answers[-1].kind == "PINGRESP"
