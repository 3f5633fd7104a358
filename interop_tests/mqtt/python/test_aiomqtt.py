"""aiomqtt, which drives paho from asyncio with a loop of its own."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SECONDS = 20
VERSIONS = [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5]
EACH_QOS = [0, 1, 2]
pytestmark = pytest.mark.parametrize("version", VERSIONS)

Message = tuple[bytes, int, bool]


def client(url: str, version, *, name: str = "", lasts: bool = False, **options: Any):
    """A client that is not connected yet."""
    host, _, port = url.removesuffix("/mqtt").rpartition("/")[2].rpartition(":")
    if version == aiomqtt.ProtocolVersion.V311:
        options["clean_session"] = not lasts
    elif lasts:
        options["clean_start"] = False
        options["properties"] = Properties(PacketTypes.CONNECT)
        options["properties"].SessionExpiryInterval = 100
    return aiomqtt.Client(host, int(port), identifier=name, protocol=version, **options)


async def take(one: aiomqtt.Client, count: int) -> list[Message]:
    async def taken() -> list[Message]:
        found: list[Message] = []
        async for message in one.messages:
            assert isinstance(message.payload, bytes)
            found.append((message.payload, message.qos, message.retain))
            if len(found) == count:
                break
        return found

    return await asyncio.wait_for(taken(), SECONDS)


async def exchange(url: str, version, topic: str, qos: int, **options: Any) -> None:
    reader, writer = client(url, version, **options), client(url, version, **options)
    async with reader, writer:
        await reader.subscribe(topic, qos=qos)
        for number in range(50):
            await writer.publish(topic, b"%d" % number, qos=qos)
        assert await take(reader, 50) == [(b"%d" % number, qos, False) for number in range(50)]


@pytest.mark.parametrize("qos", EACH_QOS)
def test_messages_in_order(server, topic, version, qos):
    asyncio.run(exchange(server.mqtt_url, version, topic, qos))


@pytest.mark.parametrize("qos", EACH_QOS)
def test_websocket(server, topic, version, qos):
    options: dict[str, Any] = {"transport": "websockets", "websocket_path": "/mqtt"}
    asyncio.run(exchange(server.mqtt_ws_url, version, topic, qos, **options))


@pytest.mark.parametrize("qos", EACH_QOS)
def test_tls(secure, authority, topic, version, qos):
    context = ssl.create_default_context(cafile=authority.certificate)
    asyncio.run(exchange(secure.mqtt_tls_url, version, topic, qos, tls_context=context))


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_while_its_client_is_away(server, topic, version, qos):
    async def scene() -> None:
        async with client(server.mqtt_url, version, name=topic, lasts=True) as first:
            await first.subscribe(topic, qos=qos)
        async with client(server.mqtt_url, version) as writer:
            for number in range(30):
                await writer.publish(topic, b"%d" % number, qos=qos)
        async with client(server.mqtt_url, version, name=topic, lasts=True) as second:
            assert [int(one[0]) for one in await take(second, 30)] == list(range(30))

    asyncio.run(scene())


async def vanish(device: aiomqtt.Client, topic: str) -> None:
    """Connect, and lose the connection."""
    async with device:
        device._client._reset_sockets()
        await device.publish(topic, b"never", qos=1)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_wills_and_retained_messages(server, topic, version, qos):
    async def scene() -> None:
        will = aiomqtt.Will(topic, b"gone", qos=qos, retain=True)
        async with client(server.mqtt_url, version) as reader:
            await reader.subscribe(topic, qos=2)
            async with client(server.mqtt_url, version, will=will):
                pass  # it disconnects
            with pytest.raises(aiomqtt.MqttError):
                await vanish(client(server.mqtt_url, version, will=will), topic)
            assert await take(reader, 1) == [(b"gone", qos, False)]
        async with client(server.mqtt_url, version) as late:
            await late.subscribe(topic, qos=2)
            assert await take(late, 1) == [(b"gone", qos, True)]

    asyncio.run(scene())


@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_shared_subscription(server, topic, version, qos):
    async def scene() -> None:
        members = [client(server.mqtt_url, version) for _ in range(2)]
        async with members[0], members[1], client(server.mqtt_url, version) as writer:
            for member in members:
                await member.subscribe(f"$share/g/{topic}", qos=qos)
            for number in range(20):
                await writer.publish(topic, b"%d" % number, qos=qos)
            came = [await take(member, 10) for member in members]
        assert sorted(int(one[0]) for part in came for one in part) == list(range(20))

    asyncio.run(scene())
