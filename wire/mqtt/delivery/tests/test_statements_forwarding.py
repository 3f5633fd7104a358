"""Normative statements about what is forwarded, and how much of it at a time, by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import (
    V3,
    V5,
    Received,
    acknowledge,
    publish,
    subscribe,
    unsubscribe,
)

LASTS = b"\x11\0\0\1\0"
USER_PROPERTY = 0x26


def user(name: str, value: str) -> bytes:
    return b"\x26" + peer.text(name) + peer.text(value)


MESSAGES: dict[str, bytes] = {
    "payload format indicator 0": b"\x01\0",  # [MQTT-3.3.2-4]
    "payload format indicator 1": b"\x01\x01",
    "response topic": b"\x08" + peer.text("answers/é/1"),  # [MQTT-3.3.2-15]
    "response topic with a dollar": b"\x08" + peer.text("$x/y"),
    "correlation data": b"\x09" + peer.text(bytes(range(256))),  # [MQTT-3.3.2-16]
    "no correlation data": b"\x09\0\0",
    "user properties": user("b", "1") + user("a", "2") + user("b", "0") + user("", "é"),
    "content type": b"\x03" + peer.text("application/json; charset=utf-8"),  # [MQTT-3.3.2-20]
    "all": b"".join(
        (user("z", "1"), b"\x09\0\x01\xff", user("a", "2"), b"\x03" + peer.text("c"),
         b"\x01\x01", user("z", "0"), b"\x08" + peer.text("r"), user("a", "2"))
    ),
}  # fmt: skip


def as_published(message: Received, properties: bytes) -> bool:
    """Whether it has these properties and no others, user properties in their order."""
    found, sent = peer.properties_in(message.properties), peer.properties_in(properties)
    in_order = [[one for one in each if one[0] == USER_PROPERTY] for each in (found, sent)]
    return sorted(found) == sorted(sent) and in_order[0] == in_order[1]


@pytest.mark.parametrize("properties", MESSAGES.values(), ids=MESSAGES)
async def test_properties_are_forwarded_unchanged(properties: bytes) -> None:
    """The payload format indicator [MQTT-3.3.2-4], the response topic [MQTT-3.3.2-15], correlation
    data [MQTT-3.3.2-16], user properties [MQTT-3.3.2-17] in their order [MQTT-3.3.2-18], and the
    content type [MQTT-3.3.2-20]: at each QoS, as a retained message, and when it is sent again,
    also after a restart.
    """
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.connected("c", version=V5, clean=False, properties=LASTS)
        await client.says(subscribe(("t", 2), version=V5))
        shared = await stage.subscribed("s", ("$share/g/t", 1), version=V5)
        writer = await stage.connected("w", version=V5)
        for qos in (0, 1, 2):
            packet = publish(
                "t", b"x", qos=qos, number=qos, retain=True, version=V5, properties=properties
            )
            await writer.says(packet)
            for reader in (client, shared):
                (message,) = await reader.receive()
                assert as_published(message, properties)
        later = await stage.connected("later", version=V5)
        _, message = await later.says(subscribe(("t", 0), version=V5))
        assert message.retain
        assert as_published(message, properties)
    async with serving(stores) as stage:
        _, (_, *again) = await stage.connects("c", version=V5, clean=False, properties=LASTS)
        assert [one.qos for one in again] == [1, 2]
        assert all(as_published(one, properties) for one in again)


async def test_messages_of_a_run_keep_their_own_properties(stage: Stage) -> None:
    """[MQTT-3.3.2-17]: with or without topic aliases in both directions; 3.1.1 gets none."""
    plain = await stage.subscribed("p", ("t", 1), version=V5)
    aliased = await stage.connected("a", version=V5, properties=b"\x22\0\x05")
    await aliased.says(subscribe(("t", 1), version=V5))
    old = await stage.subscribed("o", ("t", 1), version=V3)
    writer = await stage.connected("w", version=V5)
    given = [user("n", str(number)) * (number % 3) for number in range(6)]
    await writer.says(
        *(publish("t" if number < 2 else "", b"%d" % number, qos=1, number=number + 1, version=V5,
                  properties=properties + b"\x23\0\x01")
          for number, properties in enumerate(given))
    )  # fmt: skip
    for client, alias in ((plain, b""), (aliased, b"\x23\0\x01")):
        got = await client.receive()
        assert len(got) == 6
        for message, properties in zip(got, given, strict=True):
            assert as_published(message, properties + alias)
    assert [one.payload for one in await old.receive()] == [b"%d" % n for n in range(6)]


@pytest.mark.parametrize(("seconds", "left"), [(0, 100), (40, 60), (99, 1), (100, None)])
async def test_the_expiry_interval_is_what_is_left_of_it(
    stage: Stage, seconds: int, left: int | None
) -> None:
    """[MQTT-3.3.2-6], and nothing is sent without a rest [MQTT-3.3.2-5]: to a session that was
    away, and as a retained message.
    """
    client = await stage.connected("c", version=V5, clean=False, properties=LASTS)
    await client.says(subscribe(("t", 1), version=V5))
    await client.is_cut()
    writer = await stage.connected("w", version=V5)
    packet = publish(
        "t", b"x", qos=1, number=1, retain=True, version=V5, properties=b"\x02\0\0\0\x64"
    )
    await writer.says(packet)
    stage.stores.clock.forward(seconds)
    _, (_, *waited) = await stage.connects("c", version=V5, clean=False, properties=LASTS)
    reader = await stage.connected("r", version=V5)
    _, *retained = await reader.says(subscribe(("t", 1), version=V5))
    expected = [] if left is None else [b"\x02" + left.to_bytes(4, "big")]
    for messages in (waited, retained):
        assert [one.properties for one in messages] == expected


async def test_each_copy_has_the_identifier_of_its_own_subscription(stage: Stage) -> None:
    """[MQTT-3.3.4-5]: a shared subscription has a copy of its own, besides that of all others."""
    client = await stage.connected("c", version=V5)
    for filter, number in (("$share/g/t", 1), ("t", 2), ("+", 3), ("$share/h/#", 200)):
        identifier = b"\x0b" + peer.number(number)
        await client.says(subscribe((filter, 1), version=V5, properties=identifier))
    await (await stage.connected("w")).says(publish("t", b"x", qos=1, number=1))
    found = sorted(
        sorted(value for _, value in peer.properties_in(one.properties))
        for one in await client.receive()
    )
    assert found == [[b"\x01"], [b"\x02", b"\x03"], [b"\xc8\x01"]]


# -- the send quota -----------------------------------------------------------------------------


async def limited(stage: Stage, maximum: int, version: int = V3) -> tuple[Client, Client]:
    """A subscriber with that Receive Maximum, and a publisher that has sent 20 messages of each
    QoS, of each in two runs.
    """
    properties = LASTS + b"\x21" + maximum.to_bytes(2, "big")
    client = await stage.connected("c", version=V5, clean=False, properties=properties)
    await client.says(subscribe(("t", 2), version=V5))
    writer = await stage.connected("w", version=version)
    for numbers in (range(10), range(10, 20)):
        for qos in (0, 1, 2):
            await writer.says(
                *(publish("t", b"%d" % number, qos=qos, number=qos and 3 * number + qos,
                          version=version) for number in numbers)
            )  # fmt: skip
    return client, writer


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("maximum", [1, 2, 7, 40])
async def test_the_send_quota(stage: Stage, maximum: int, version: int) -> None:
    """It begins above zero and not above Receive Maximum [MQTT-4.9.0-1]; while it is zero no
    message of QoS 1 or 2 is sent [MQTT-4.9.0-2], [MQTT-3.3.4-9], until PUBACK, PUBCOMP or a failed
    PUBREC.
    """
    client, _ = await limited(stage, maximum, version)
    in_flight: dict[int, Received] = {}
    got: list[bytes] = []
    released: set[int] = set()
    fresh = await client.receive()
    assert any(one.qos for one in fresh)
    for turn in range(1_000):
        for one in fresh:
            if one.kind == "PUBLISH" and one.qos:
                in_flight[one.number] = one
                got.append(one.payload)
        assert len(in_flight) <= maximum
        if not in_flight:
            break
        number, message = next(iter(in_flight.items()))
        if message.qos == 1:
            fresh = await client.says(acknowledge("PUBACK", number))
        elif number not in released and turn % 5:
            fresh = await client.says(acknowledge("PUBREC", number))  # it still counts
            released.add(number)
            assert [one.kind for one in fresh] == ["PUBREL"]
            continue
        else:
            kind = "PUBCOMP" if number in released else "PUBREC"
            reason = None if number in released else 0x97
            fresh = await client.says(acknowledge(kind, number, reason))
        released.discard(number)
        del in_flight[number]
    assert sorted(map(int, got)) == sorted([*range(20)] * 2)


@pytest.mark.parametrize("maximum", [1, 3])
async def test_the_quota_begins_anew_with_each_connection(stage: Stage, maximum: int) -> None:
    """[MQTT-4.9.0-1]: what is sent again counts, too [MQTT-4.9.0-2]."""
    client, _ = await limited(stage, 7)
    sent = [one for one in await client.receive() if one.qos]
    assert len(sent) == 7
    await client.is_cut()
    properties = LASTS + b"\x21" + maximum.to_bytes(2, "big")
    client, (_, *again) = await stage.connects("c", version=V5, clean=False, properties=properties)
    assert [one.number for one in again] == [one.number for one in sent[:maximum]]


async def test_nothing_but_publish_is_delayed(stage: Stage) -> None:
    """While the quota is zero, everything else is processed and answered [MQTT-4.9.0-3],
    [MQTT-3.3.4-10]; messages of QoS 0 are sent.
    """
    client, writer = await limited(stage, 1)
    (message,) = [one for one in await client.receive() if one.qos]
    requests = [
        (peer.PINGREQ, "PINGRESP", 0),
        (publish("other", b"", qos=1, number=5, version=V5), "PUBACK", 5),
        (publish("other", b"", qos=2, number=6, version=V5), "PUBREC", 6),
        (acknowledge("PUBREL", 6), "PUBCOMP", 6),
        (acknowledge("PUBREC", 999), "PUBREL", 999),
        (subscribe(("more", 1), number=7, version=V5), "SUBACK", 7),
        (unsubscribe("more", number=8, version=V5), "UNSUBACK", 8),
    ]
    for request, kind, number in requests:
        (answer,) = await client.says(request)
        assert (answer.kind, answer.number) == (kind, number)
    await writer.says(publish("t", b"zero"))
    assert [(one.payload, one.qos) for one in await client.receive()] == [(b"zero", 0)]
    (following,) = await client.acknowledges(message)
    assert (following.kind, following.payload) == ("PUBLISH", b"1")
