"""gmqtt, which speaks 5.0 by default, and amqtt's client of 3.1.1: implementations of their own."""

from __future__ import annotations

import asyncio
import logging

import gmqtt
import pytest
from amqtt.client import MQTTClient

SECONDS = 20


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("version", [gmqtt.constants.MQTTv311, gmqtt.constants.MQTTv50])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_gmqtt(server, topic, version, qos):
    host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")

    async def play() -> list[bytes]:
        reader, writer = gmqtt.Client(f"{topic}-r"), gmqtt.Client(f"{topic}-w")
        got: asyncio.Queue[bytes] = asyncio.Queue()
        subscribed = asyncio.Event()
        reader.on_subscribe = lambda *_: subscribed.set()

        def on_message(_client, name, payload, message_qos, _properties):
            assert (name, message_qos) == (topic, qos)
            got.put_nowait(bytes(payload))
            return 0

        reader.on_message = on_message
        for client in (reader, writer):
            await client.connect(host, int(port), version=version)
        reader.subscribe(topic, qos=qos)
        await asyncio.wait_for(subscribed.wait(), SECONDS)
        for number in range(100):
            writer.publish(topic, b"%d" % number, qos=qos)
        found = [await asyncio.wait_for(got.get(), SECONDS) for _ in range(100)]
        for client in (reader, writer):
            await client.disconnect()
        return found

    assert asyncio.run(play()) == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_amqtt(server, topic, qos):
    url = server.mqtt_url + "/"

    async def play() -> list[bytes]:
        config = {"auto_reconnect": False}
        reader, writer = MQTTClient(config=config), MQTTClient(config=config)
        for client in (reader, writer):
            await client.connect(url)
        await reader.subscribe([(topic, qos)])
        found = []
        for number in range(50):
            await writer.publish(topic, b"%d" % number, qos=qos)
            message = await reader.deliver_message(timeout_duration=SECONDS)
            assert (message.topic, message.qos) == (topic, qos)
            found.append(bytes(message.data))
        for client in (reader, writer):
            await client.disconnect()
        return found

    assert asyncio.run(play()) == [b"%d" % number for number in range(50)]
