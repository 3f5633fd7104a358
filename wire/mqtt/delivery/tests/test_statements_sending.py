"""Normative statements about messages to clients, which the server sends, by their numbers.

The statements are listed in docs/mqtt-statements.md; messages of clients are in
`session/tests/test_statements_receiving.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, Received, acknowledge, publish

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])


def lasting(version: int) -> dict[str, Any]:
    properties = b"\x11\0\0\0\x60" if version == V5 else b""
    return {"version": version, "clean": False, "properties": properties}


async def send(stage: Stage, *messages: tuple[bytes, int], properties: bytes = b"") -> None:
    """Publish to the topic `t`, each as a message of its own."""
    writer = await stage.connected("w", version=V5)
    for number, (payload, qos) in enumerate(messages, 1):
        await writer.says(
            publish("t", payload, qos=qos, number=number * (qos > 0), version=V5,
                    properties=properties)
        )  # fmt: skip
    await writer.leaves()


async def resumed(stage: Stage, version: int) -> tuple[Client, list[Received]]:
    """The client `d` again, and what it is sent."""
    client, (connack, *packets) = await stage.connects("d", **lasting(version))
    assert connack.number == 1
    return client, packets


# -- packet identifiers -------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize("lasts", [False, True])
async def test_identifiers_are_unused_and_not_zero(stage: Stage, version: int, lasts: bool) -> None:
    """[MQTT-2.2.1-4], [MQTT-2.3.1-4 of 3.1.1]: new messages of QoS 1 [MQTT-4.3.2-1] and QoS 2
    [MQTT-4.3.3-1] get one that no unfinished exchange has.
    """
    options = lasting(version) if lasts else {"version": version}
    client = await stage.subscribed("d", ("t", 2), **options)
    in_use: dict[int, Received] = {}
    for turn in range(12):
        await send(stage, *((b"%d" % n, n % 2 + 1) for n in range(5)))
        for message in await client.receive():
            assert message.number not in {0, *in_use}
            in_use[message.number] = message
        for message in list(in_use.values())[turn % 3 :: 2]:
            if message.qos == 1:
                await client.acknowledges(message)
                del in_use[message.number]
            elif turn % 2:
                await client.says(acknowledge("PUBREC", message.number))  # still in use
            else:
                await client.acknowledges(message)
                del in_use[message.number]
    assert len(in_use) > 5


async def test_an_identifier_in_use_is_not_given_to_a_message_of_another_log() -> None:
    """[MQTT-2.2.1-4]: sessions that last derive them from the places of messages in their logs."""
    async with serving(rules=(MappingRule("other/#", "other"),)) as stage:
        client = await stage.subscribed("d", ("#", 1), **lasting(V5))
        writer = await stage.connected("w")
        for topic in ("t", "other/1", "t", "other/2"):
            await writer.says(publish(topic, topic.encode(), qos=1, number=1))
        in_flight, got = await client.receive(), []
        while in_flight:
            assert len({one.number for one in in_flight}) == len(in_flight)
            got += [one.payload for one in in_flight]
            in_flight = await client.acknowledges(*in_flight)
        assert sorted(got) == [b"other/1", b"other/2", b"t", b"t"]


# -- the first time -----------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize("dup", [False, True])
async def test_the_first_publish_has_dup_0(stage: Stage, version: int, dup: bool) -> None:
    """QoS 0 [MQTT-4.3.1-1 of both], QoS 1 [MQTT-4.3.2-2] and QoS 2 [MQTT-4.3.3-2]: that of the
    publisher does not count. Those of QoS 0 have no identifier.
    """
    client = await stage.subscribed("d", ("t", 2), **lasting(version))
    writer = await stage.connected("w")
    for qos in (0, 1, 2):
        await writer.says(publish("t", b"x", qos=qos, number=qos, dup=dup and qos > 0))
    got = await client.receive()
    assert [(one.qos, one.dup, one.number > 0) for one in got] == [
        (0, False, False), (1, False, True), (2, False, True)
    ]  # fmt: skip
    await client.is_cut()
    await send(stage, (b"y", 1), (b"z", 2))
    _, packets = await resumed(stage, version)
    assert [(one.payload, one.dup) for one in packets[2:]] == [(b"y", False), (b"z", False)]


# -- until it is acknowledged -------------------------------------------------------------------


@OLD_AND_NEW
async def test_a_message_of_qos_1_is_unacknowledged_until_puback(
    stage: Stage, version: int
) -> None:
    """[MQTT-4.3.2-3], [MQTT-4.3.2-1 of 3.1.1]: it is sent again by each connection, with DUP 1
    [MQTT-3.3.1-1 of both] and its identifier [MQTT-4.4.0-1 of both]; at no other time, and not
    after PUBACK.
    """
    client = await stage.subscribed("d", ("t", 1), **lasting(version))
    await send(stage, (b"x", 1))
    (sent,) = await client.receive()
    assert not sent.dup
    for wrong in ("PUBREC", "PUBCOMP"):
        await client.says(acknowledge(wrong, sent.number))
    for _ in range(3):
        await stage.forward(100)
        assert await client.receive() == []
        await client.is_cut()
        client, (again,) = await resumed(stage, version)
        assert (again.payload, again.number, again.qos, again.dup) == (b"x", sent.number, 1, True)
    await client.acknowledges(again)
    await client.is_cut()
    assert (await resumed(stage, version))[1] == []


@OLD_AND_NEW
async def test_a_message_of_qos_2_is_unacknowledged_until_pubrec_and_pubrel_until_pubcomp(
    stage: Stage, version: int
) -> None:
    """PUBLISH is sent again until PUBREC [MQTT-4.3.3-3], and not after PUBREL [MQTT-4.3.3-6],
    which answers it [MQTT-4.3.3-4] and is sent again until PUBCOMP [MQTT-4.3.3-5]; so
    [MQTT-4.3.3-1 of 3.1.1], [MQTT-4.4.0-1 of both]. All have the same identifier [MQTT-2.2.1-5],
    [MQTT-2.3.1-6 of 3.1.1].
    """
    client = await stage.subscribed("d", ("t", 2), **lasting(version))
    await send(stage, (b"x", 2))
    (sent,) = await client.receive()
    assert not sent.dup
    for wrong in ("PUBACK", "PUBCOMP"):
        await client.says(acknowledge(wrong, sent.number))
    for _ in range(3):
        await client.is_cut()
        client, (again,) = await resumed(stage, version)
        assert (again.payload, again.number, again.qos, again.dup) == (b"x", sent.number, 2, True)
    for _ in range(3):
        (pubrel,) = await client.says(acknowledge("PUBREC", sent.number))
        assert (pubrel.kind, pubrel.number, pubrel.reasons) == ("PUBREL", sent.number, ())
        await client.says(acknowledge("PUBACK", sent.number))
        await client.is_cut()
        client, (again,) = await resumed(stage, version)
        assert (again.kind, again.number) == ("PUBREL", sent.number)
    assert await client.says(acknowledge("PUBCOMP", sent.number)) == []
    await client.is_cut()
    assert (await resumed(stage, version))[1] == []


@OLD_AND_NEW
async def test_messages_are_repeated_in_their_order(stage: Stage, version: int) -> None:
    """[MQTT-4.6.0-1 of 3.1.1]: of all QoS, those that are new behind them [MQTT-4.6.0-5],
    [MQTT-4.6.0-6 of 3.1.1].
    """
    client = await stage.subscribed("d", ("t", 2), **lasting(version))
    await send(stage, *((b"%d" % n, n % 2 + 1) for n in range(9)))
    sent = await client.receive()
    for place in (6, 1, 3):
        await client.acknowledges(sent[place])
    await client.is_cut()
    await send(stage, (b"9", 1), (b"10", 2))
    _, packets = await resumed(stage, version)
    assert [one.payload for one in packets] == [b"%d" % n for n in (0, 2, 4, 5, 7, 8, 9, 10)]
    assert [one.dup for one in packets] == [True] * 6 + [False] * 2
    assert [one.number for one in packets[:6]] == [sent[n].number for n in (0, 2, 4, 5, 7, 8)]


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_message_that_was_sent_once_does_not_expire(stage: Stage, qos: int) -> None:
    """[MQTT-4.3.3-7], and of QoS 1 by [MQTT-4.3.2-3]: what is left of its interval is 0 then. One
    that was not sent expires [MQTT-3.3.2-5].
    """
    client = await stage.subscribed("d", ("t", qos), **lasting(V5))
    expiry = b"\x02\0\0\0\x0a"
    await send(stage, (b"sent", qos), properties=expiry)
    (sent,) = await client.receive()
    assert sent.properties == expiry
    await client.is_cut()
    await send(stage, (b"waits", qos), properties=expiry)
    stage.stores.clock.forward(11)
    client, packets = await resumed(stage, V5)
    assert [(one.payload, one.number, one.dup) for one in packets] == [(b"sent", sent.number, True)]
    assert packets[0].properties == b"\x02\0\0\0\0"
    answers = await client.acknowledges(packets[0])
    assert [one.kind for one in answers] == ["PUBREL"] * (qos == 2)


@pytest.mark.parametrize(("qos", "kind"), [(1, "PUBACK"), (2, "PUBREC")])
@pytest.mark.parametrize("reason", [0x80, 0x83, 0x87, 0x97, 0x99])
async def test_a_message_that_is_rejected(stage: Stage, qos: int, kind: str, reason: int) -> None:
    """[MQTT-4.4.0-2]: it is not sent again, whether the connection ends or not."""
    client = await stage.subscribed("d", ("t", 2), **lasting(V5))
    await send(stage, (b"x", qos), (b"y", qos))
    x, y = await client.receive()
    assert await client.says(acknowledge(kind, x.number, reason)) == []
    await stage.forward(1)
    assert await client.receive() == []
    await client.is_cut()
    _, packets = await resumed(stage, V5)
    assert [(one.payload, one.number) for one in packets] == [(b"y", y.number)]


@pytest.mark.parametrize(("qos", "kind"), [(1, "PUBACK"), (2, "PUBREC")])
async def test_a_shared_message_that_is_rejected(qos: int, kind: str) -> None:
    """[MQTT-4.8.2-6]: no other member gets it, whatever becomes of the one that has rejected it,
    and of the server.
    """
    share, stores = ("$share/g/t", qos), Stores()
    async with serving(stores) as stage:
        first = await stage.subscribed("d", share, **lasting(V5))
        await send(stage, (b"x", qos))
        (message,) = await first.receive()
        other = await stage.subscribed("2", share, version=V5)
        assert await first.says(acknowledge(kind, message.number, 0x83)) == []
        await first.is_cut()
        await stage.forward(1)
        assert await other.receive() == []
        await stage.front.stop()
    async with serving(stores) as stage:
        third = await stage.connected("3", version=V5)
        answers = await third.says(peer.subscribe(share, version=V5))
        assert [one.kind for one in answers] == ["SUBACK"]
        assert (await resumed(stage, V5))[1] == []


# -- order --------------------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize("granted", [0, 1, 2])
async def test_messages_are_delivered_in_their_order(
    stage: Stage, version: int, granted: int
) -> None:
    """Those of one client with the same topic and QoS [MQTT-4.6.0-5], [MQTT-4.6.0-6 of 3.1.1]; for
    every topic, without a setting [MQTT-4.6.0-6], [MQTT-4.6.0-5 of 3.1.1].
    """
    window = b"\x21\0\x05" if version == V5 else b""
    reader = await stage.connected("r", version=version, properties=window)
    topics = ["a", "a/b", "$x/y", "€", "persistent://public/default/x"]
    filters = [(topic, granted) for topic in topics]
    await reader.says(peer.subscribe(*filters, version=version))
    writers = [await stage.connected(name) for name in ("1", "2")]
    expected: dict[tuple[str, int, bytes], list[int]] = {}
    for count in range(60):
        name = b"%d" % (count % 2)
        topic, qos = topics[count * 7 % 5], count % 3
        expected.setdefault((topic, min(qos, granted), name), []).append(count)
        payload = b"%s %d" % (name, count)
        answers = await writers[count % 2].says(
            publish(topic, payload, qos=qos, number=(count + 1) * (qos > 0))
        )
        await writers[count % 2].completes(*answers)
    found: dict[tuple[str, int, bytes], list[int]] = {}
    messages = await reader.receive()
    while messages:
        for one in messages:
            name, count_text = one.payload.split()
            found.setdefault((one.topic, one.qos, name), []).append(int(count_text))
        messages = [one for one in await reader.acknowledges(*messages) if one.kind == "PUBLISH"]
    assert found == expected
