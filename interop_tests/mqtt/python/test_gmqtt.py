"""gmqtt, an asyncio client of its own, which speaks 5.0 by default and 3.1.1."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import gmqtt
import pytest

from interop_tests.mqtt.leftovers import end_all

SECONDS = 20
VERSIONS = [gmqtt.constants.MQTTv311, gmqtt.constants.MQTTv50]
EACH_QOS = [0, 1, 2]
pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR)


class Device:
    """One client, with everything that it receives: payload, QoS and RETAIN."""

    def __init__(self, client_id: str, *, lasts: bool = False, **options: Any) -> None:
        if lasts:
            options["session_expiry_interval"] = 100
        self.client = gmqtt.Client(client_id, clean_session=not lasts, **options)
        self.client.set_config({"reconnect_delay": 0})
        self.got: asyncio.Queue[tuple[bytes, int, bool]] = asyncio.Queue()
        self.present: asyncio.Queue[bool] = asyncio.Queue()
        self._granted: asyncio.Queue[int] = asyncio.Queue()
        self.client.on_message = self._on_message
        self.client.on_connect = lambda _, flags, *__: self.present.put_nowait(bool(flags & 1))
        self.client.on_subscribe = lambda _, __, qos, *___: self._granted.put_nowait(qos[0])

    def _on_message(self, _client, _topic, payload, qos, properties) -> int:
        self.got.put_nowait((bytes(payload), qos, bool(properties["retain"])))
        return 0

    async def subscribe(self, name: str, qos: int) -> int:
        self.client.subscribe(name, qos=qos)
        return await asyncio.wait_for(self._granted.get(), SECONDS)

    async def take(self, count: int) -> list[tuple[bytes, int, bool]]:
        return [await asyncio.wait_for(self.got.get(), SECONDS) for _ in range(count)]

    async def publish(self, name: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        """Publish, and wait until nothing is unacknowledged."""
        self.client.publish(name, payload, qos=qos, retain=retain)
        await asyncio.wait_for(self.client._persistent_storage.wait_empty(), SECONDS)

    def stays_away(self) -> None:
        # gmqtt's stop_reconnect() still allows one try: it compares 0 failures with 0 retries,
        # and -1 is its word for "without limit". A try under way when the loop ends stays open.
        self.client.set_config({"reconnect_retries": -2})

    def is_cut(self) -> None:
        """Its connection ends without DISCONNECT."""
        self.client._connection._transport.abort()


@pytest.fixture
def play(server, version) -> Callable[..., Any]:
    """Runs a scene, which is told how to connect; its clients are disconnected afterwards."""

    def run(
        scene: Callable[[Callable[..., Awaitable[Device]]], Awaitable[Any]],
        url: str = server.mqtt_url,
        context: ssl.SSLContext | bool = False,
    ) -> Any:
        host, _, port = url.rpartition("/")[2].rpartition(":")

        async def whole() -> Any:
            made: list[Device] = []

            async def connected(client_id: str, **options: Any) -> Device:
                made.append(Device(client_id, **options))
                await made[-1].client.connect(host, int(port), ssl=context, version=version)
                return made[-1]

            try:
                return await scene(connected)
            finally:
                for device in made:
                    with suppress(ssl.SSLError):  # a PUBREL may come after close_notify
                        await device.client.disconnect()
                await end_all()

        return asyncio.run(whole())

    return run


def exchange(topic: str, qos: int):
    async def scene(connected):
        reader, writer = await connected(f"{topic}-r"), await connected(f"{topic}-w")
        assert await reader.subscribe(topic, qos) == qos
        for number in range(100):
            writer.client.publish(topic, b"%d" % number, qos=qos)
        assert await reader.take(100) == [(b"%d" % number, qos, False) for number in range(100)]

    return scene


@pytest.mark.parametrize("qos", EACH_QOS)
def test_messages_in_order(play, topic, qos):
    play(exchange(topic, qos))


@pytest.mark.parametrize("qos", EACH_QOS)
def test_tls(play, secure, authority, topic, qos):
    context = ssl.create_default_context(cafile=authority.certificate)
    play(exchange(topic, qos), secure.mqtt_tls_url, context)


@pytest.mark.parametrize("qos", [1, 2])
def test_it_connects_again_by_itself(play, topic, qos):
    async def scene(connected):
        reader, writer = await connected(f"{topic}-r", lasts=True), await connected(f"{topic}-w")
        assert not await reader.present.get()
        await reader.subscribe(topic, qos)
        for turn in range(3):
            reader.is_cut()
            for number in range(20):
                await writer.publish(topic, b"%d" % (20 * turn + number), qos)
            assert await asyncio.wait_for(reader.present.get(), SECONDS)
            got = await reader.take(20)
            assert [int(payload) for payload, _, _ in got] == [20 * turn + n for n in range(20)]

    play(scene)


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_while_its_client_is_away(play, topic, qos):
    async def scene(connected):
        first = await connected(topic, lasts=True)
        await first.subscribe(topic, qos)
        await first.client.disconnect()
        writer = await connected(f"{topic}-w")
        for number in range(30):
            await writer.publish(topic, b"%d" % number, qos)
        second = await connected(topic, lasts=True)
        assert await second.present.get()
        assert [int(payload) for payload, _, _ in await second.take(30)] == list(range(30))

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_will(play, topic, qos):
    async def scene(connected):
        reader = await connected(f"{topic}-r")
        await reader.subscribe(topic, 2)
        will = gmqtt.Message(topic, b"gone", qos=qos, retain=True)
        polite = await connected(f"{topic}-polite", will_message=will)
        await polite.client.disconnect()
        device = await connected(f"{topic}-w", will_message=will)
        device.stays_away()
        device.is_cut()
        assert await reader.take(1) == [(b"gone", qos, False)]
        late = await connected(f"{topic}-late")
        await late.subscribe(topic, 2)
        assert await late.take(1) == [(b"gone", qos, True)]
        assert reader.got.empty()

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_retained_messages(play, topic, qos):
    async def scene(connected):
        writer, reader = await connected(f"{topic}-w"), await connected(f"{topic}-r")
        for number in (1, 2, 3):
            await writer.publish(f"{topic}/{number}", b"%d" % number, qos, retain=True)
        await writer.publish(f"{topic}/2", b"", qos, retain=True)
        await writer.publish(f"{topic}-stored", b"", 1)  # as all before it
        await reader.subscribe(f"{topic}/+", 2)
        assert sorted(await reader.take(2)) == [(b"1", qos, True), (b"3", qos, True)]
        await writer.publish(f"{topic}/2", b"live", qos, retain=True)
        assert await reader.take(1) == [(b"live", qos, False)]

    play(scene)


@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_shared_subscription(play, topic, qos):
    async def scene(connected):
        members = [await connected(f"{topic}-{number}") for number in range(2)]
        for member in members:
            await member.subscribe(f"$share/g/{topic}", qos)
        writer = await connected(f"{topic}-w")
        for number in range(20):
            await writer.publish(topic, b"%d" % number, qos)
        came = [await member.take(10) for member in members]
        payloads = [int(payload) for part in came for payload, _, _ in part]
        assert sorted(payloads) == list(range(20))

    play(scene)
