"""Sessions without connections: expiry, wills, and restarts."""

from __future__ import annotations

import logging

import pytest

from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V5, publish, subscribe

WILL = ("will/t", b"bye", 1, False)


def expiry(seconds: int) -> bytes:
    return b"\x11" + seconds.to_bytes(4, "big")


def delay(seconds: int) -> bytes:
    return b"\x18" + seconds.to_bytes(4, "big")


@pytest.mark.parametrize(("properties", "lasts"), [(expiry(100), 100), (b"", 0)])
async def test_a_session_expires(stage: Stage, properties: bytes, lasts: int) -> None:
    """[MQTT-3.1.2-23]"""
    client = await stage.subscribed("d", ("t", 1), version=V5, clean=False, properties=properties)
    await client.is_cut()
    await stage.forward(max(lasts - 1, 0))
    assert stage.services.sessions.records.count == bool(lasts)
    await stage.forward(2)
    assert stage.services.sessions.records.count == 0
    _, (connack,) = await stage.connects("d", version=V5, clean=False)
    assert connack.number == 0


async def test_a_session_that_has_expired_is_not_resumed(stage: Stage) -> None:
    client = await stage.subscribed("d", ("t", 1), version=V5, properties=expiry(10))
    await client.is_cut()
    stage.stores.clock.forward(11)  # before anybody has looked
    _, (connack,) = await stage.connects("d", version=V5, clean=False)
    assert connack.number == 0


async def test_the_expiry_clock_goes_on_while_the_server_is_down() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("d", ("t", 1), version=V5, properties=expiry(100))
        await client.is_cut()
    stores.clock.forward(99)
    async with serving(stores) as stage:
        await stage.forward(0)
        assert stage.services.sessions.records.count == 1
        await stage.forward(2)
        assert stage.services.sessions.records.count == 0


@pytest.mark.parametrize(
    ("reason", "published"), [(None, False), (0, False), (4, True), (0x80, True)]
)
async def test_only_a_normal_disconnect_discards_the_will(
    stage: Stage, reason: int | None, published: bool
) -> None:
    """[MQTT-3.1.2-8], [MQTT-3.1.2-10], [MQTT-3.14.4-3]"""
    reader = await stage.subscribed("watcher", ("will/#", 2))
    client = await stage.connected("w", version=V5, will=WILL)
    await client.says(peer.disconnect(reason))
    await client.is_cut()
    got = await reader.receive()
    assert [(one.topic, one.payload, one.qos) for one in got] == [WILL[:3]] * published
    assert stage.services.sessions.records.count == 0


async def test_a_broken_connection_publishes_the_will(stage: Stage) -> None:
    reader = await stage.subscribed("watcher", ("will/#", 0))
    client = await stage.connected("w", will=("will/r", b"gone", 0, True))
    await client.is_cut()
    assert [one.payload for one in await reader.receive()] == [b"gone"]
    later = await stage.connected("later")
    _, retained = await later.says(subscribe(("will/r", 0)))
    assert (retained.payload, retained.retain) == (b"gone", True)


async def test_a_will_with_a_delay(stage: Stage) -> None:
    """[MQTT-3.1.3-9]: after the delay, and not if the client is back before."""
    reader = await stage.subscribed("watcher", ("will/#", 0))
    options = {
        "version": V5, "clean": False, "properties": expiry(100), "will": WILL,
        "will_properties": delay(10),
    }  # fmt: skip
    await (await stage.connected("w", **options)).is_cut()
    await stage.forward(9)
    second = await stage.connected("w", **options)
    await stage.forward(20)
    assert await reader.receive() == []
    await second.is_cut()
    await stage.forward(11)
    assert [one.payload for one in await reader.receive()] == [b"bye"]
    await stage.forward(200)
    assert await reader.receive() == []


async def test_a_will_is_published_when_the_session_ends(stage: Stage) -> None:
    """3.1.3.2.2: at the end of the session, if that comes before the delay."""
    reader = await stage.subscribed("watcher", ("will/#", 0))
    client = await stage.connected(
        "w", version=V5, properties=expiry(5), will=WILL, will_properties=delay(1000)
    )
    await client.is_cut()
    await stage.forward(6)
    assert [one.payload for one in await reader.receive()] == [b"bye"]
    await (await stage.connected(
        "w", version=V5, properties=expiry(50), will=WILL, will_properties=delay(1000)
    )).is_cut()  # fmt: skip
    await stage.connected("w", version=V5, clean=True)
    assert [one.payload for one in await reader.receive()] == [b"bye"], "a clean start ends it"


@pytest.mark.parametrize(
    ("seconds", "clean", "wills"), [(0, False, 1), (9, False, 0), (9, True, 1)]
)
async def test_the_will_of_a_connection_that_is_taken_over(
    stage: Stage, seconds: int, clean: bool, wills: int
) -> None:
    reader = await stage.subscribed("watcher", ("will/#", 0))
    first = await stage.connected(
        "w", version=V5, properties=expiry(100), will=WILL, will_properties=delay(seconds)
    )
    second = await stage.connected("w", version=V5, clean=clean, properties=expiry(100))
    await first.is_cut()
    await stage.forward(50)
    assert len(await reader.receive()) == wills
    await second.leaves()
    assert await reader.receive() == []


@pytest.mark.parametrize(("seconds", "properties"), [(0, b""), (30, expiry(100))])
async def test_a_will_is_published_after_a_crash(seconds: int, properties: bytes) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await stage.connected(
            "w", version=V5, properties=properties, will=WILL, will_properties=delay(seconds)
        )
    async with serving(stores) as stage:
        reader = await stage.subscribed("watcher", ("will/#", 0))
        await stage.forward(seconds - 1 if seconds else 0)
        if seconds:
            assert await reader.receive() == []
            await stage.forward(2)
        assert [one.payload for one in await reader.receive()] == [b"bye"]
    async with serving(stores) as stage:
        reader = await stage.subscribed("watcher", ("will/#", 0))
        await stage.forward(1000)
        assert await reader.receive() == [], "it is published once"


async def test_a_damaged_record(caplog: pytest.LogCaptureFixture) -> None:
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("d", ("t", 1), clean=False)
        await client.leaves()
        await stage.services.sessions.records.stored.store(b"d", b"\x07what")  # damage
    async with serving(stores) as stage:
        with caplog.at_level(logging.ERROR):
            _, (connack,) = await stage.connects("d", clean=False)
        assert connack.number == 0
    assert "the session of 'd' is lost" in caplog.text


async def test_two_connections_with_one_id_at_once(stage: Stage) -> None:
    clients = [stage.stranger() for _ in range(5)]
    for client in clients:
        client.feed(peer.connect("d", clean=False))
    answers = [await client.receive() for client in clients]
    assert [[one.kind for one in each] for each in answers] == [["CONNACK"]] * 5
    (last,) = [client for client in clients if client.line.ending is None]
    for client in clients:
        if client is not last:
            await client.is_cut()
    assert list(stage.services.sessions.connected) == ["d"]
    writer = await stage.connected("w")
    await last.says(subscribe(("t", 1)))
    await writer.says(publish("t", b"x", qos=1, number=1))
    assert len(await last.receive()) == 1
