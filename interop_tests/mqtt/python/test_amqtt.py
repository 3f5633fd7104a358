"""amqtt's client, an independent implementation of 3.1.1 on asyncio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from amqtt.client import MQTTClient

from interop_tests.mqtt.leftovers import end_all

SECONDS = 20
EACH_QOS = [0, 1, 2]


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL)


Message = tuple[bytes, int | None, bool]


async def take(client: MQTTClient, count: int) -> list[Message]:
    found: list[Message] = []
    for _ in range(count):
        message = await client.deliver_message(timeout_duration=SECONDS)
        assert message is not None
        assert message.publish_packet is not None
        found.append((bytes(message.data), message.qos, message.publish_packet.retain_flag))
    return found


@pytest.fixture
def play(server) -> Callable[..., Any]:
    """Runs a scene, which is told how to connect; its clients are disconnected afterwards."""

    def run(scene, url: str = server.mqtt_url, **options: Any) -> Any:
        url += "/" if url.count("/") == 2 else ""

        async def whole() -> Any:
            made: list[MQTTClient] = []

            async def connected(client_id: str, *, clean: bool = True, **config: Any) -> MQTTClient:
                client = MQTTClient(client_id, config={"auto_reconnect": False, **config})
                await client.connect(url, cleansession=clean, **options)
                made.append(client)
                return client

            try:
                return await scene(connected)
            finally:
                for client in made:
                    await client.disconnect()
                await end_all()

        return asyncio.run(whole())

    return run


def exchange(topic: str, qos: int):
    async def scene(connected):
        reader, writer = await connected(f"{topic}-r"), await connected(f"{topic}-w")
        assert await reader.subscribe([(topic, qos)]) == [qos]
        for number in range(50):
            await writer.publish(topic, b"%d" % number, qos=qos)
        assert await take(reader, 50) == [(b"%d" % number, qos, False) for number in range(50)]

    return scene


@pytest.mark.parametrize("qos", EACH_QOS)
def test_messages_in_order(play, topic, qos):
    play(exchange(topic, qos))


@pytest.mark.parametrize("qos", EACH_QOS)
def test_websocket(play, server, topic, qos):
    play(exchange(topic, qos), server.mqtt_ws_url)


@pytest.mark.parametrize("qos", EACH_QOS)
@pytest.mark.parametrize("transport", ["mqtt_tls_url", "mqtt_wss_url"])
def test_tls(play, secure, authority, topic, qos, transport):
    play(exchange(topic, qos), getattr(secure, transport), cafile=authority.certificate)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_while_its_client_is_away(play, topic, qos):
    async def scene(connected):
        first = await connected(topic, clean=False)
        await first.subscribe([(topic, qos)])
        await first.disconnect()
        writer = await connected(f"{topic}-w")
        for number in range(30):
            await writer.publish(topic, b"%d" % number, qos=qos)
        second = await connected(topic, clean=False)
        assert [int(payload) for payload, _, _ in await take(second, 30)] == list(range(30))

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_will(play, topic, qos):
    async def scene(connected):
        reader = await connected(f"{topic}-r")
        await reader.subscribe([(topic, 2)])
        will = {"topic": topic, "message": "gone", "qos": qos, "retain": True}
        polite = await connected(f"{topic}-polite", will=will)
        await polite.disconnect()
        device = await connected(f"{topic}-w", will=will)
        device._handler.writer._writer.transport.abort()
        assert await take(reader, 1) == [(b"gone", qos, False)]
        late = await connected(f"{topic}-late")
        await late.subscribe([(topic, 2)])
        assert await take(late, 1) == [(b"gone", qos, True)]

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_retained_messages(play, topic, qos):
    async def scene(connected):
        writer, reader = await connected(f"{topic}-w"), await connected(f"{topic}-r")
        for number in (1, 2, 3):
            await writer.publish(f"{topic}/{number}", b"%d" % number, qos=qos, retain=True)
        await writer.publish(f"{topic}/2", b"", qos=qos, retain=True)
        await writer.publish(f"{topic}-stored", b"", qos=1)  # as all before it
        await reader.subscribe([(f"{topic}/+", 2)])
        assert sorted(await take(reader, 2)) == [(b"1", qos, True), (b"3", qos, True)]
        await writer.publish(f"{topic}/2", b"live", qos=qos, retain=True)
        assert await take(reader, 1) == [(b"live", qos, False)]

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_shared_subscription(play, topic, qos):
    """3.1.1 has none; this server divides messages all the same."""

    async def scene(connected):
        members = [await connected(f"{topic}-{number}") for number in range(2)]
        for member in members:
            await member.subscribe([(f"$share/g/{topic}", qos)])
        writer = await connected(f"{topic}-w")
        for number in range(20):
            await writer.publish(topic, b"%d" % number, qos=qos)
        came = [await take(member, 10) for member in members]
        assert sorted(int(payload) for part in came for payload, _, _ in part) == list(range(20))

    play(scene)
