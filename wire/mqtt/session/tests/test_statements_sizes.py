"""Normative statements about a client's Maximum Packet Size, by their numbers.

The statements are listed in docs/mqtt-statements.md. The server adds reason strings where it has
something to say, and user properties nowhere, so both are looked for in every answer.
"""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.security.conversation import AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.wire.mqtt.conftest import Client, Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, Received, acknowledge, publish, subscribe, unsubscribe

REASON_STRING, USER_PROPERTY = 0x1F, 0x26
NO_SUCH_NAMESPACE = "persistent://public/none/t"
METHOD = b"\x15" + peer.text("SCRAM-SHA-256")
UNSET_ALIAS = publish("", b"", version=V5, properties=b"\x23\0\x01")


def limit(size: int) -> bytes:
    """Maximum Packet Size."""
    return b"\x27" + size.to_bytes(4, "big")


async def connack_size(stage: Stage) -> int:
    """The size of CONNACK, which a client has to accept at least."""
    client, (connack,) = await stage.connects(version=V5, properties=limit(1_000))
    await client.leaves()
    return connack.size


def explained(answer: Received) -> bool:
    """Whether it has a reason string or user properties."""
    return not {REASON_STRING, USER_PROPERTY}.isdisjoint(
        name for name, _ in peer.properties_in(answer.properties)
    )


ANSWERS: dict[str, tuple[bytes, int, bool]] = {
    "PUBACK": (publish(NO_SUCH_NAMESPACE, b"", qos=1, number=1, version=V5), 0x90, True),
    "PUBREC": (publish(NO_SUCH_NAMESPACE, b"", qos=2, number=1, version=V5), 0x90, True),
    "PUBREL": (acknowledge("PUBREC", 1), 0x92, False),
    "PUBCOMP": (acknowledge("PUBREL", 1), 0x92, False),
    "SUBACK": (subscribe((NO_SUCH_NAMESPACE, 1), version=V5), 0x8F, True),
    "UNSUBACK": (unsubscribe("never", version=V5), 0x11, False),
    "DISCONNECT": (UNSET_ALIAS, 0x82, True),
}
"""By its kind: what it answers, its reason, and whether the server explains it."""


@pytest.mark.parametrize("kind", ANSWERS)
async def test_explanations_do_not_make_an_answer_too_large(stage: Stage, kind: str) -> None:
    """Reason strings and user properties of PUBACK [MQTT-3.4.2-2], [MQTT-3.4.2-3];
    PUBREC [MQTT-3.5.2-2], [MQTT-3.5.2-3]; PUBREL [MQTT-3.6.2-2], [MQTT-3.6.2-3];
    PUBCOMP [MQTT-3.7.2-2], [MQTT-3.7.2-3]; SUBACK [MQTT-3.9.2-1], [MQTT-3.9.2-2];
    UNSUBACK [MQTT-3.11.2-1], [MQTT-3.11.2-2]; DISCONNECT [MQTT-3.14.2-3], [MQTT-3.14.2-4].
    So no packet is larger than the client accepts [MQTT-3.1.2-24].
    """
    packet, reason, has_words = ANSWERS[kind]
    smallest = await connack_size(stage)
    client = await stage.connected(version=V5)
    (whole,) = await client.says(packet)
    assert (whole.kind, whole.reasons, explained(whole)) == (kind, (reason,), has_words)
    await client.is_cut()
    for size in {smallest, max(whole.size - 1, smallest), max(whole.size, smallest)}:
        client = await stage.connected(version=V5, properties=limit(size))
        (answer,) = await client.says(packet)
        assert (answer.kind, answer.number, answer.reasons) == (kind, whole.number, (reason,))
        assert answer.size <= size
        assert explained(answer) == (has_words and whole.size <= size)
        await client.is_cut()


@pytest.mark.parametrize(
    "options", [{"properties": METHOD}, {"will": ("$SYS/x", b"", 0, False)}], ids=["method", "will"]
)
async def test_a_refusal_is_not_too_large(stage: Stage, options: dict[str, Any]) -> None:
    """A CONNACK that fails [MQTT-3.2.2-19], [MQTT-3.2.2-20]; if even the shortest one is too
    large, the connection is closed without.
    """
    properties = options.get("properties", b"")
    _, (whole,) = await stage.connects(version=V5, **options)
    assert (whole.kind, explained(whole)) == ("CONNACK", True)
    for size in (whole.size, whole.size - 1, 5, 4, 1):
        given = {**options, "properties": properties + limit(size)}
        client, answers = await stage.connects(version=V5, **given)
        assert client.line.ending is not None
        assert [(one.kind, one.reasons) for one in answers] == [
            ("CONNACK", whole.reasons)
        ] * (size >= 5)  # fmt: skip
        for one in answers:
            assert one.size <= size
            assert explained(one) == (size == whole.size)


async def test_connack_is_not_too_large(stage: Stage) -> None:
    """[MQTT-3.1.2-24]: a client that does not accept it whole cannot connect, as what it says is
    binding for it. The session that it has is not touched.
    """
    lasts = b"\x11\0\0\0\x60"
    _, (whole,) = await stage.connects("c", version=V5, properties=lasts + limit(1_000))
    for size, reason in ((whole.size, 0), (whole.size - 1, 0x95), (5, 0x95)):
        properties = lasts + limit(size)
        _, (connack,) = await stage.connects("c", version=V5, clean=False, properties=properties)
        assert connack.reasons == (reason,)
        assert connack.size <= size
    client, answers = await stage.connects("c", version=V5, properties=limit(4))
    assert (answers, client.line.ending is None) == ([], False)
    assert stage.services.sessions.records.count == 1


class Mechanism:
    """One that says 100 bytes, if it is asked a second time, and nothing at first."""

    rounds = 0
    refusal = ""

    def __init__(self, _peer: AuthPeer) -> None:
        self.identity: Identity | None = None

    async def respond(self, said: bytes) -> bytes:
        if said:
            self.identity = Identity("ali")
            return b""
        Mechanism.rounds += 1
        return b"x" * (Mechanism.rounds > 1) * 100


async def test_auth_is_not_too_large(stage: Stage) -> None:
    """It has neither reason string [MQTT-3.15.2-2] nor user properties [MQTT-3.15.2-3]; if the data
    of a mechanism is too large, the authentication fails [MQTT-3.1.2-24].
    """
    stage.broker.access.mechanisms["M"] = Mechanism
    method = b"\x15" + peer.text("M")
    begin = peer.frame(0xF0, b"\x19" + peer.block(method, V5))
    go_on = peer.frame(0xF0, b"\x18" + peer.block(method + b"\x16" + peer.text("hello"), V5))
    for size in (100, 110, 111, 1_000):
        Mechanism.rounds = 0
        client, (auth,) = await stage.connects(version=V5, properties=method + limit(size))
        answers = [auth, *await client.says(go_on), *await client.says(begin)]
        last = "AUTH" if size >= 111 else "DISCONNECT"
        assert [one.kind for one in answers] == ["AUTH", "CONNACK", last]
        assert all(one.size <= size and not explained(one) for one in answers[:2])
        assert (answers[-1].size <= size, answers[-1].reasons) == (
            True, (0x18 if last == "AUTH" else 0x95,)
        )  # fmt: skip
        assert (client.line.ending is None) == (last == "AUTH")
    client, (connack,) = await stage.connects(version=V5, properties=method + limit(20))
    assert (connack.kind, connack.reasons) == ("CONNACK", (0x95,))
    assert client.line.ending is not None


@pytest.mark.parametrize("kind", ["SUBACK", "UNSUBACK"])
async def test_an_answer_that_cannot_be_shorter(stage: Stage, kind: str) -> None:
    """[MQTT-3.1.2-24]: the connection is closed with 0x95 instead."""
    size = await connack_size(stage)
    client = await stage.connected(version=V5, properties=limit(size))
    for count, fits in ((size - 5, True), (size - 4, False)):  # 5 bytes, and one for each filter
        filters = [str(number) for number in range(count)]
        request = unsubscribe(*filters, version=V5)
        if kind == "SUBACK":
            request = subscribe(*((filter, 0) for filter in filters), version=V5)
        (answer,) = await client.says(request)
        assert answer.size <= size
        assert answer.kind == (kind if fits else "DISCONNECT")
    assert answer.reasons == (0x95,)
    assert client.line.ending is not None


async def test_a_message_that_is_too_large_counts_as_delivered(stage: Stage) -> None:
    """[MQTT-3.1.2-24], [MQTT-3.1.2-25]: it is not sent, also not to the next connection, which
    would accept it; others are, and it takes no place in the window.
    """
    lasts = b"\x11\0\0\0\x60"
    large = b"x" * 60
    writer = await stage.connected("w")
    await writer.says(publish("r", large, qos=1, number=1, retain=True))
    for qos in (0, 1, 2):
        properties = lasts + limit(60) + b"\x21\0\x01"
        client = await stage.connected("c", version=V5, properties=properties)
        assert len(await client.says(subscribe(("t", qos), ("r", qos), version=V5))) == 1
        for number in range(1, 4):
            await writer.says(publish("t", large, qos=qos, number=number * (qos > 0)))
        await writer.completes(
            *await writer.says(publish("t", b"y", qos=qos, number=9 * (qos > 0)))
        )
        (message,) = await client.receive()
        assert (message.payload, message.qos) == (b"y", qos)
        await client.acknowledges(message)
        await client.is_cut()
        again, answers = await resumed(stage, lasts)
        assert [one.kind for one in answers] == ["CONNACK"]
        await again.is_cut()
        await writer.leaves()
        writer = await stage.connected("w")


async def resumed(stage: Stage, properties: bytes) -> tuple[Client, list[Received]]:
    return await stage.connects("c", version=V5, clean=False, properties=properties)


async def test_a_message_of_a_large_run_is_looked_at_alone(stage: Stage) -> None:
    """[MQTT-3.1.2-25]: those that fit are sent, whatever they are stored with."""
    client = await stage.connected("c", version=V5, properties=limit(60))
    await client.says(subscribe(("t", 1), version=V5))
    writer = await stage.connected("w", version=V5)
    sizes = [10, 60, 20, 61, 30, 1_000, 40]
    await writer.says(
        *(publish("t", b"x" * size, qos=1, number=number, version=V5)
          for number, size in enumerate(sizes, 1))
    )  # fmt: skip
    got = await client.receive()
    assert [len(one.payload) for one in got] == [10, 20, 30, 40]
    assert max(one.size for one in got) <= 60
