"""Normative statements about retained messages, by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

import pytest

from magnetar.wire.mqtt.conftest import Client, Stage
from magnetar.wire.mqtt.tests.peer import V3, V5, Received, publish, subscribe

OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])


async def retain(writer: Client, topic: str, payload: bytes, qos: int = 0) -> None:
    packet = publish(
        topic, payload, qos=qos, number=1 if qos else 0, retain=True, version=writer.version
    )
    await writer.completes(*await writer.says(packet))


async def retained(stage: Stage, filter: str = "#", qos: int = 2) -> list[Received]:
    """What a new subscriber gets."""
    reader = await stage.connected("new")
    _, *messages = await reader.says(subscribe((filter, qos)))
    await reader.leaves()
    return messages


@OLD_AND_NEW
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_they_are_stored_for_future_subscribers(stage: Stage, version: int, qos: int) -> None:
    """With their QoS [MQTT-3.3.1-5 of 3.1.1], and sent with RETAIN 1 [MQTT-3.3.1-8 of 3.1.1]."""
    await retain(await stage.connected("w", version=version), "t", b"x", qos)
    for granted in (0, 1, 2):
        (message,) = await retained(stage, "t", granted)
        assert (message.payload, message.qos, message.retain) == (b"x", min(qos, granted), True)


@OLD_AND_NEW
async def test_the_last_one_of_each_topic(stage: Stage, version: int) -> None:
    """[MQTT-3.3.1-6 of 3.1.1]: of all that match a new subscription. One of QoS 0 replaces one
    with a higher QoS [MQTT-3.3.1-7 of 3.1.1], [MQTT-3.3.1-5].
    """
    writer = await stage.connected("w", version=version)
    for topic, payload, qos in (
        ("a/1", b"old", 2), ("a/2", b"2", 1), ("b/1", b"other", 1), ("a/1", b"1", 0),
    ):  # fmt: skip
        await retain(writer, topic, payload, qos)
    found = await retained(stage, "a/+")
    assert sorted((one.topic, one.payload, one.qos) for one in found) == [
        ("a/1", b"1", 0), ("a/2", b"2", 1)
    ]  # fmt: skip


@OLD_AND_NEW
async def test_they_are_ordinary_messages_for_those_who_subscribed_before(
    stage: Stage, version: int
) -> None:
    """RETAIN is 0 [MQTT-3.3.1-9 of 3.1.1]; in 5.0 without Retain As Published [MQTT-3.3.1-12]."""
    reader = await stage.subscribed("r", ("t", 1), version=version)
    await retain(await stage.connected("w", version=version), "t", b"x", 1)
    assert [(one.payload, one.retain) for one in await reader.receive()] == [(b"x", False)]


@OLD_AND_NEW
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_an_empty_one(stage: Stage, version: int, qos: int) -> None:
    """It is delivered, and removes the one of its topic [MQTT-3.3.1-10 of 3.1.1],
    [MQTT-3.3.1-6]; it is stored in no case [MQTT-3.3.1-7], [MQTT-3.3.1-11 of 3.1.1].
    """
    writer = await stage.connected("w", version=version)
    await retain(writer, "t", b"x", 1)
    await retain(writer, "other", b"y", 1)
    reader = await stage.connected("r", version=version)
    await reader.says(subscribe(("t", 2 | 32 * (version == V5)), version=version))
    await reader.receive()
    for topic in ("t", "t", "never"):  # the second one finds nothing to remove
        await retain(writer, topic, b"", qos)
    got = [(one.payload, one.qos, one.retain) for one in await reader.receive()]
    assert got == [(b"", qos, False)] * 2
    assert [one.topic for one in await retained(stage)] == ["other"]
    assert stage.services.retained.count == 1


@OLD_AND_NEW
@pytest.mark.parametrize("payload", [b"new", b""])
async def test_a_message_without_retain_changes_nothing(
    stage: Stage, version: int, payload: bytes
) -> None:
    """[MQTT-3.3.1-8], [MQTT-3.3.1-12 of 3.1.1]: it neither replaces, removes nor is stored."""
    writer = await stage.connected("w", version=version)
    await retain(writer, "t", b"x", 1)
    for topic in ("t", "other"):
        await writer.says(publish(topic, payload, qos=1, number=1, version=version))
    assert [(one.topic, one.payload) for one in await retained(stage)] == [("t", b"x")]


@OLD_AND_NEW
@pytest.mark.parametrize("clean", [True, False])
async def test_they_outlive_the_session_of_their_publisher(
    stage: Stage, version: int, clean: bool
) -> None:
    """[MQTT-3.1.2-7 of 3.1.1]: they are no part of it."""
    writer = await stage.connected("w", version=version, clean=clean)
    await retain(writer, "t", b"x", 1)
    await writer.leaves()
    again = await stage.connected("w", version=version, clean=True)
    await again.leaves()
    assert stage.services.sessions.records.count == 0
    assert [(one.payload, one.qos) for one in await retained(stage)] == [(b"x", 1)]
