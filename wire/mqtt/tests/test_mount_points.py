"""Mount points: namespaces whose clients see nothing of each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.mqtt.clients.record import StoredWill
from magnetar.wire.mqtt.conftest import Stage
from magnetar.wire.mqtt.front import MountPoint, MqttFront
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.tests.peer import V5, publish, subscribe

NO_LOCAL = 4
RULES = (MappingRule("orders/#", "orders"),)
OPTIONS = (MqttOptions(rules=RULES), MqttOptions("acme/devices", RULES, confined=True))


@asynccontextmanager
async def mounting(stores: Stores) -> AsyncIterator[tuple[Stage, Stage]]:
    """The listeners that everybody uses, and those of a mount point."""
    async with running(stores) as broker:
        namespace = NamespaceName.parse("acme/devices")
        if "acme" not in await broker.catalog.tenants():
            tenant = Tenant(allowed_clusters=["standalone"])
            await broker.catalog.put_tenant("acme", tenant, create=True)
            await broker.catalog.create_namespace(namespace, NamespacePolicies())
        front = MqttFront(broker, [MountPoint(each) for each in OPTIONS])
        await front.open()
        everybody, mounted = (Stage(stores, broker, front) for _ in OPTIONS)
        mounted.services = front.services_by_namespace["acme/devices"]
        yield everybody, mounted


@pytest.fixture
async def stages() -> AsyncIterator[tuple[Stage, Stage]]:
    async with mounting(Stores()) as made:
        yield made


async def test_nothing_is_shared(stages: tuple[Stage, Stage]) -> None:
    """Neither topics, nor client ids and their sessions, nor retained messages."""
    readers, writers = [], []
    for stage in stages:
        readers.append(await stage.subscribed("reader", ("#", 1), clean=False))
        writers.append(await stage.connected("writer"))
    for number, writer in enumerate(writers):
        payload = b"%d" % number
        await writer.says(publish("t", payload, qos=1, number=1, retain=True))
        await writer.says(publish("orders/1", payload, qos=1, number=2))
    for number, (stage, reader) in enumerate(zip(stages, readers, strict=True)):
        got = await reader.receive()
        assert [one.payload for one in got] == [b"%d" % number] * 2
        later = await stage.connected("later")
        _, *retained = await later.says(subscribe(("#", 0)))
        assert [one.payload for one in retained] == [b"%d" % number]
        assert list(stage.services.sessions.connected) == ["reader", "writer", "later"]
    names = set(stages[0].broker.topics)
    assert {"persistent://acme/devices/mqtt", "persistent://acme/devices/orders"} < names


async def test_a_mount_point_confines_its_clients(stages: tuple[Stage, Stage]) -> None:
    everybody, mounted = stages
    free = await everybody.connected("c", version=V5)
    confined = await mounted.connected("c", version=V5)
    for topic, reason in (
        ("persistent://public/default/x", 0x90),
        ("persistent://acme/devices/x", 0),
    ):
        (puback,) = await confined.says(publish(topic, b"x", qos=1, number=1, version=V5))
        assert puback.reasons == ((reason,) if reason else ())
    (suback,) = await confined.says(
        subscribe(("persistent://public/default/#", 1), ("#", 1), version=V5)
    )
    assert suback.reasons == (0x8F, 1)
    will = ("persistent://public/default/x", b"", 0, False)
    _, (connack,) = await mounted.connects("d", version=V5, will=will)
    assert connack.reasons == (0x90,)
    (puback,) = await free.says(
        publish("persistent://acme/devices/x", b"x", qos=1, number=1, version=V5)
    )
    assert puback.reasons == ()


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("persistent://pulsar/system/__mqtt_sessions", 0x8F),
        ("persistent://public/default/__consumer_offsets", 0x87),
        ("persistent://public/default/__consumer_offsets-partition-0", 0x87),
    ],
)
async def test_nobody_writes_to_the_topics_of_the_server(
    stages: tuple[Stage, Stage], topic: str, reason: int
) -> None:
    for stage in stages:
        confined = stage is stages[1] and "public" in topic
        client = await stage.connected("c", version=V5)
        (puback,) = await client.says(publish(topic, b"x", qos=1, number=1, version=V5))
        assert puback.reasons == (0x90,)
        (suback,) = await client.says(subscribe((topic, 1), version=V5))
        assert suback.reasons == (0x8F if confined else reason,)
        assert topic not in stage.broker.topics


async def test_each_holds_what_its_own_sessions_need(stages: tuple[Stage, Stage]) -> None:
    everybody, mounted = stages
    for stage in stages:
        sleeper = await stage.subscribed("s", ("persistent://acme/devices/x", 1), clean=False)
        await sleeper.leaves()
    writer = await mounted.connected("w")
    await writer.says(publish("persistent://acme/devices/x", b"1", qos=1, number=1))
    _, (_, message) = await everybody.connects("s", clean=False)
    assert message.payload == b"1"
    for stage in stages:
        await stage.services.hold.advance()
    topic = everybody.broker.topics["persistent://acme/devices/x"].stored
    assert topic is not None
    assert sorted(topic.subscriptions) == ["mqtt-sessions", "mqtt-sessions-acme%2Fdevices"]
    _, (_, message) = await mounted.connects("s", clean=False)
    assert message.payload == b"1"


TOPIC = "persistent://acme/devices/x"


async def test_a_crash_does_not_confuse_clients_of_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each finds its own messages of QoS 2 in the log that both write to, and only these."""
    stores = Stores()
    async with mounting(stores) as stages:
        clients = [await stage.connected("c", clean=False) for stage in stages]
        for number, (stage, client) in enumerate(zip(stages, clients, strict=True), 7):
            await client.completes(*await client.says(publish(TOPIC, b"1", qos=2, number=1)))
            monkeypatch.setattr(stage.services.sessions.records, "put_progress", lambda *_: None)
            assert await client.says(publish(TOPIC, b"2", qos=2, number=number)) == []
    async with mounting(stores) as stages:
        reader = await stages[1].subscribed("r", (TOPIC, 0))
        for stage in stages:
            client, _ = await stage.connects("c", clean=False)
            for number in (7, 8):
                await client.says(publish(TOPIC, b"again", qos=2, number=number, dup=True))
        assert [one.payload for one in await reader.receive()] == [b"again"] * 2


async def test_no_local_is_about_clients_of_the_same_listeners(
    stages: tuple[Stage, Stage],
) -> None:
    """[MQTT-3.8.3-3]"""
    clients = [await stage.subscribed("c", (TOPIC, NO_LOCAL), version=V5) for stage in stages]
    for payload, client in zip((b"0", b"1"), clients, strict=True):
        client.feed(publish(TOPIC, payload, version=V5))
    for payload, client in zip((b"1", b"0"), clients, strict=True):
        assert [one.payload for one in await client.receive()] == [payload]


async def test_no_local_and_a_will(stages: tuple[Stage, Stage]) -> None:
    everybody, _ = stages
    readers = [await stage.subscribed("c", (TOPIC, NO_LOCAL), version=V5) for stage in stages]
    await everybody.services.publish_will("c", StoredWill(TOPIC, b"gone", 0, False))
    assert [[one.payload for one in await reader.receive()] for reader in readers] == [
        [], [b"gone"]
    ]  # fmt: skip
