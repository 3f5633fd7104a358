"""Normative statements about messages of clients, which the server receives, by their numbers.

The statements are listed in docs/mqtt-statements.md; messages to clients are in
`delivery/tests/test_statements_sending.py`.
"""

from __future__ import annotations

import pytest

from magnetar.core.kernel import errors
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Client, Stage, serving
from magnetar.wire.mqtt.errors import AWAY
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, acknowledge, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
NO_SUCH_NAMESPACE = "persistent://public/none/t"


async def watched(stage: Stage, version: int) -> tuple[Client, Client]:
    """A subscriber to all, and a publisher."""
    return await stage.subscribed("watcher", ("#", 0)), await stage.connected("w", version=version)


async def payloads(client: Client) -> list[bytes]:
    return [one.payload for one in await client.receive()]


@OLD_AND_NEW
@pytest.mark.parametrize("number", [1, 255, 65_535])
async def test_publish_is_answered_according_to_its_qos(
    stage: Stage, version: int, number: int
) -> None:
    """[MQTT-3.3.4-1 of both]: and all answers have its packet identifier [MQTT-2.2.1-5],
    [MQTT-2.3.1-6 of 3.1.1]; PUBREL is answered with PUBCOMP [MQTT-4.3.3-11].
    """
    client = await stage.connected(version=version)
    assert await client.says(publish("t", b"0", version=version)) == []
    for packet, kind in (
        (publish("t", b"1", qos=1, number=number, version=version), "PUBACK"),
        (publish("t", b"2", qos=2, number=number, version=version), "PUBREC"),
        (acknowledge("PUBREL", number), "PUBCOMP"),
    ):
        (answer,) = await client.says(packet)
        assert (answer.kind, answer.number, answer.reasons) == (kind, number, ())


@OLD_AND_NEW
@pytest.mark.parametrize("qos", [1, 2])
async def test_nothing_is_answered_before_it_is_taken_over(version: int, qos: int) -> None:
    """QoS 1 [MQTT-4.3.2-4] and QoS 2 [MQTT-4.3.3-8]: the receiver is its owner then, so the message
    is stored.
    """
    stores = Stores()
    async with serving(stores) as stage:
        watcher, client = await watched(stage, version)
        await client.says(publish("t", b"first", version=version))
        await watcher.receive()
        stores.ledgers.sync_at_once = False
        assert await client.says(publish("t", b"x", qos=qos, number=1, version=version)) == []
        assert await watcher.receive() == []
        stores.ledgers.sync()
        (answer,) = await client.receive()
        assert answer.kind == ("PUBACK" if qos == 1 else "PUBREC")
        assert await payloads(watcher) == [b"x"]


@OLD_AND_NEW
@pytest.mark.parametrize("dup", [False, True])
async def test_after_puback_an_identifier_is_new(stage: Stage, version: int, dup: bool) -> None:
    """[MQTT-4.3.2-5], [MQTT-4.3.2-2 of 3.1.1]: whatever DUP says."""
    watcher, client = await watched(stage, version)
    for payload in (b"1", b"2", b"2"):
        packet = publish("t", payload, qos=1, number=7, dup=dup, version=version)
        (puback,) = await client.says(packet)
        assert (puback.kind, puback.number) == ("PUBACK", 7)
    assert await payloads(watcher) == [b"1", b"2", b"2"]


@OLD_AND_NEW
@pytest.mark.parametrize("dup", [False, True])
async def test_a_message_of_qos_2_is_delivered_once(stage: Stage, version: int, dup: bool) -> None:
    """[MQTT-4.3.3-2 of 3.1.1]: PUBLISH and PUBREL are answered each time they come; a message is
    new after PUBCOMP [MQTT-4.3.3-12], whatever DUP says.
    """
    watcher, client = await watched(stage, version)
    for payload in (b"1", b"2"):
        packet = publish("t", payload, qos=2, number=7, dup=dup, version=version)
        for _ in range(3):
            (pubrec,) = await client.says(packet)
            assert (pubrec.kind, pubrec.number, pubrec.reasons) == ("PUBREC", 7, ())
        for times in range(2):
            (pubcomp,) = await client.says(acknowledge("PUBREL", 7))
            assert (pubcomp.kind, pubcomp.number) == ("PUBCOMP", 7)
            assert pubcomp.reasons == ((0x92,) if times and version == V5 else ())
    assert await payloads(watcher) == [b"1", b"2"]


@pytest.mark.parametrize("dup", [False, True])
async def test_after_a_failed_pubrec_an_identifier_is_new(stage: Stage, dup: bool) -> None:
    """[MQTT-4.3.3-9]"""
    watcher, client = await watched(stage, V5)
    for _ in range(2):
        packet = publish(NO_SUCH_NAMESPACE, b"1", qos=2, number=7, dup=dup, version=V5)
        (pubrec,) = await client.says(packet)
        assert (pubrec.kind, pubrec.reasons) == ("PUBREC", (0x90,))
    (pubrec,) = await client.says(publish("t", b"2", qos=2, number=7, dup=dup, version=V5))
    assert (pubrec.kind, pubrec.number, pubrec.reasons) == ("PUBREC", 7, ())
    assert await payloads(watcher) == [b"2"]


_KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, errors.BrokerError)
    and not issubclass(kind, AWAY)
]


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
async def test_failures_have_their_own_codes(
    stage: Stage, kind: type[errors.BrokerError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PUBACK [MQTT-3.4.2-1] and PUBREC [MQTT-3.5.2-1]: whatever the broker's error is."""

    async def fails(_topic: str) -> None:
        raise kind("as this test wants it")

    client = await stage.connected(version=V5)
    monkeypatch.setattr(stage.services.logs, "open_for", fails)
    for qos in (1, 2):
        (answer,) = await client.says(publish("t", b"", qos=qos, number=qos, version=V5))
        (code,) = answer.reasons
        assert code in {0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}, "3.4.2.1, table 3-4"


async def test_an_exchange_goes_on_after_the_message_has_expired(stage: Stage) -> None:
    """[MQTT-4.3.3-13]: also in the next connection, and the message is not stored again
    [MQTT-4.3.3-10].
    """
    options = {"version": V5, "clean": False, "properties": b"\x11\0\0\0\x60"}
    watcher = await stage.subscribed("watcher", ("t", 0))
    client = await stage.connected("w", **options)
    expiry = b"\x02\0\0\0\x01"
    packets = [
        publish("t", b"x", qos=2, number=7, dup=dup, version=V5, properties=expiry)
        for dup in (False, True)
    ]
    await client.says(packets[0])
    assert await payloads(watcher) == [b"x"]
    for _ in range(2):
        stage.stores.clock.forward(5)
        (pubrec,) = await client.says(packets[1])
        assert (pubrec.kind, pubrec.number, pubrec.reasons) == ("PUBREC", 7, ())
        await client.is_cut()
        client = await stage.connected("w", **options)
    (pubcomp,) = await client.says(acknowledge("PUBREL", 7))
    assert (pubcomp.kind, pubcomp.number, pubcomp.reasons) == ("PUBCOMP", 7, ())
    assert await payloads(watcher) == []


@pytest.mark.parametrize("is_permitted", [True, False])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("name", [NO_SUCH_NAMESPACE, "$SYS/x", "/".join("a" * 129)])
async def test_what_3_1_1_cannot_refuse(
    stage: Stage, name: str, qos: int, is_permitted: bool
) -> None:
    """[MQTT-3.3.5-2 of 3.1.1]: it is acknowledged, and dropped: its client would send it forever if
    its connection ended.
    """
    watcher = await stage.subscribed("watcher", ("#", 0))
    client = await stage.connected("c")
    topic = "t" if is_permitted else name
    answers = await client.says(publish(topic, b"x", qos=qos, number=1))
    assert [one.kind for one in answers] == [["PUBACK", "PUBREC"][qos - 1]]
    if qos == 2:
        (pubcomp,) = await client.says(acknowledge("PUBREL", 1))
        assert (pubcomp.kind, pubcomp.number) == ("PUBCOMP", 1)
    assert client.line.ending is None
    (answer,) = await client.says(publish("t", b"y", qos=1, number=2))
    assert answer.kind == "PUBACK"
    assert await payloads(watcher) == ([b"x", b"y"] if is_permitted else [b"y"])


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_transient_error_ends_a_connection_of_3_1_1(qos: int) -> None:
    """[MQTT-4.8.0-2 of 3.1.1]: the message is sent again then, and stored."""
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.connected("c", clean=False)
        await client.says(publish("t", b"0", qos=qos, number=1))
        stores.ledgers.full = True
        assert await client.says(publish("t", b"x", qos=qos, number=2)) == []
        assert client.line.ending is not None
        await client.is_cut()
        stores.ledgers.full = False
        client = await stage.connected("c", clean=False)
        (answer,) = await client.says(publish("t", b"x", qos=qos, number=2, dup=True))
        assert (answer.kind, answer.number) == ("PUBACK" if qos == 1 else "PUBREC", 2)


async def test_dup_is_not_passed_on(stage: Stage) -> None:
    """[MQTT-3.3.1-3 of both]: of a message that is stored as it came, or not."""
    properties = b"\x01\x01"
    for reader_version in (V3, V5):
        reader = await stage.subscribed("r", ("t", 2), version=reader_version)
        for version in (V3, V5):
            client = await stage.connected("w", version=version)
            for qos in (1, 2):
                packet = publish(
                    "t", b"x", qos=qos, number=qos, dup=True, version=version,
                    properties=properties,
                )  # fmt: skip
                await client.says(packet)
                (message,) = await reader.receive()
                assert (message.qos, message.dup) == (qos, False)
                await reader.acknowledges(message)


@OLD_AND_NEW
async def test_answers_are_in_the_order_of_the_messages(version: int) -> None:
    """PUBACK [MQTT-4.6.0-2 of 3.1.1] and PUBREC [MQTT-4.6.0-3 of 3.1.1]: also when they are stored
    in different logs, and the later one first.
    """
    stores = Stores()
    async with serving(stores, rules=(MappingRule("slow", "slow"),)) as stage:
        client = await stage.connected(version=version)
        for topic in ("slow", "t"):
            await client.says(publish(topic, b"", qos=1, number=9, version=version))
        slow, quick = list(stores.ledgers.ledgers.values())[-2:]
        stores.ledgers.sync_at_once = False
        for qos, kind in ((1, "PUBACK"), (2, "PUBREC")):
            numbers = range(10 * qos, 10 * qos + 6)
            await client.says(
                *(publish("t" if number % 2 else "slow", b"x", qos=qos, number=number,
                          version=version) for number in numbers)
            )  # fmt: skip
            quick.sync()
            assert await client.receive() == []
            slow.sync()
            answers = await client.receive()
            assert [(one.kind, one.number) for one in answers] == [
                (kind, number) for number in numbers
            ]


@OLD_AND_NEW
async def test_pubrel_is_in_the_order_of_pubrec(stage: Stage, version: int) -> None:
    """[MQTT-4.6.0-4 of 3.1.1]: in that of the client, in one piece or in several."""
    for lasts in (False, True):
        properties = b"\x11\0\0\0\x60" if version == V5 and lasts else b""
        client = await stage.subscribed(
            "r", ("t", 2), version=version, clean=not lasts, properties=properties
        )
        writer = await stage.connected("w")
        await writer.says(*(publish("t", b"x", qos=2, number=n) for n in range(1, 7)))
        ids = [one.number for one in await client.receive()]
        order = [ids[place] for place in (3, 0, 5, 1, 4, 2)]
        client.feed(*(acknowledge("PUBREC", number) for number in order[:3]))
        for number in order[3:]:
            client.feed(acknowledge("PUBREC", number))
        answers = await client.receive()
        assert [(one.kind, one.number) for one in answers] == [
            ("PUBREL", number) for number in order
        ]


# -- topic aliases ------------------------------------------------------------------------------


def alias(number: int) -> bytes:
    return b"\x23" + number.to_bytes(2, "big")


@pytest.mark.parametrize(("maximum", "number"), [(3, 4), (3, 65_535), (0, 1)])
async def test_an_alias_above_what_the_server_announces(maximum: int, number: int) -> None:
    """[MQTT-3.2.2-17], and [MQTT-3.2.2-18] without any: the connection is closed with 0x94, and
    the message is not published.
    """
    async with serving(topic_alias_maximum=maximum) as stage:
        watcher = await stage.subscribed("watcher", ("#", 0))
        client, (connack,) = await stage.connects("c", version=V5)
        found = dict(peer.properties_in(connack.properties))
        assert int.from_bytes(found.get(0x22, b"\0"), "big") == maximum
        packet = publish("t", b"x", version=V5, properties=alias(number))
        answers = await client.says(packet)
        assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x94,))]
        assert client.line.ending is not None
        assert await watcher.receive() == []


async def test_all_aliases_up_to_the_maximum() -> None:
    """[MQTT-3.3.2-12]: each stands for its own topic."""
    async with serving(topic_alias_maximum=10) as stage:
        watcher = await stage.subscribed("watcher", ("#", 0))
        client = await stage.connected("c", version=V5)
        numbers = range(1, 11)
        for topic in ("t/{}", ""):
            packets = [
                publish(topic.format(number), b"", version=V5, properties=alias(number))
                for number in numbers
            ]
            assert await client.says(*packets) == []
            assert [one.topic for one in await watcher.receive()] == [
                f"t/{number}" for number in numbers
            ]


async def test_aliases_of_a_client_end_with_its_connection(stage: Stage) -> None:
    """[MQTT-3.3.2-7]: also if its session lasts."""
    options = {"version": V5, "clean": False, "properties": b"\x11\0\0\0\x60"}
    client = await stage.connected("c", **options)
    await client.says(publish("t", b"x", version=V5, properties=alias(1)))
    await client.is_cut()
    again, (connack,) = await stage.connects("c", **options)
    assert connack.number == 1
    answers = await again.says(publish("", b"x", version=V5, properties=alias(1)))
    assert [(one.kind, one.reasons) for one in answers] == [("DISCONNECT", (0x82,))]


async def test_aliases_to_a_client_end_with_its_connection(stage: Stage) -> None:
    """[MQTT-3.3.2-7]: the next connection hears the name again."""
    properties = b"\x11\0\0\0\x60" + b"\x22\0\x05"
    options = {"version": V5, "clean": False, "properties": properties}
    client = await stage.connected("c", **options)
    await client.says(subscribe(("t", 0), version=V5))
    writer = await stage.connected("w")
    for expected in ("t", ""):
        await writer.says(publish("t", b"x"))
        assert [one.topic for one in await client.receive()] == [expected]
    await client.is_cut()
    again = await stage.connected("c", **options)
    await writer.says(publish("t", b"x"))
    assert [one.topic for one in await again.receive()] == ["t"]
