"""Logs that are new: every session gets a place there before a message is stored, or all of it."""

from __future__ import annotations

import pytest

from magnetar.core.broker import administration
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AutoTopicCreation
from magnetar.core.testing.bench import stored
from magnetar.core.testing.broker import Stores
from magnetar.core.testing.entries import entry
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION
from magnetar.wire.mqtt.clients.tests.test_rule_changes import SHARED, acknowledged, resumed
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.tests.peer import publish, unsubscribe

FUNNEL = TopicName.parse("public/default/mqtt")


async def begin(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(FUNNEL, 1)


async def grow(stage: Stage) -> None:
    """Three partitions more, which the front notices."""
    await stage.broker.catalog.grow_partitioned(FUNNEL, 4)
    assert await stage.services.logs.look_for_partitions()


async def write(stage: Stage, count: int) -> set[bytes]:
    """Messages to all partitions."""
    writer = await stage.connected("w")
    for number in range(count):
        topic = f"t/{number}"
        await writer.says(publish(topic, b"%d" % number, qos=1, number=number + 1))
    await writer.leaves()
    return {b"%d" % number for number in range(count)}


async def test_messages_in_new_partitions_are_missed_by_nobody() -> None:
    """Also those that are stored before the sessions know of the partitions."""
    stores = Stores()
    async with serving(stores) as stage:
        await begin(stage)
        reader = await stage.subscribed("r", ("t/#", 1))
        worker = await stage.subscribed("k", ("$share/g/t/#", 1), **SHARED)
        for name, filter, options in (
            ("s", "t/#", {"clean": False}),
            ("g", "$share/h/t/#", SHARED),
        ):
            await (await stage.subscribed(name, (filter, 1), **options)).leaves()
        await grow(stage)
        expected = await write(stage, 40)
        await stage.services.new_logs.read(whole=True)
        expected |= await write(stage, 80)
        for client in reader, worker:
            assert set(await acknowledged(client)) == expected
        for name, more in (("s", {}), ("g", SHARED)):
            assert set(await resumed(stage, name, **more)) == expected


async def test_new_partitions_keep_what_sleeping_sessions_need() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        await begin(stage)
        await (await stage.subscribed("s", ("t/#", 1), clean=False)).leaves()
        await grow(stage)
        expected = await write(stage, 100)
        await stage.services.new_logs.read(whole=True)
        for _ in range(3):
            await stage.services.hold.advance()
            await stage.forward(1)
        for number in range(4):
            topic = (await stage.broker.topic(FUNNEL.partition(number))).stored
            assert topic is not None
            assert SUBSCRIPTION in topic.subscriptions
            await stage.broker.housekeeping.trim(topic)
        assert set(await resumed(stage, "s")) == expected


async def test_a_topic_of_its_own_is_read_by_older_subscriptions() -> None:
    """Rules may give each MQTT topic a log, and subscriptions with wildcards read new ones, too."""
    stores = Stores()
    async with serving(stores, rules=(MappingRule("#", "{each}"),)) as stage:
        reader = await stage.subscribed("r", ("t/+", 1), ("t/#", 1))
        other = await stage.subscribed("o", ("u/+", 1), ("t", 1))
        worker = await stage.subscribed("k", ("$share/g/t/#", 1), **SHARED)
        await (await stage.subscribed("s", ("t/#", 1), clean=False)).leaves()
        expected = await write(stage, 5)
        assert set(await acknowledged(reader)) == expected
        assert set(await acknowledged(worker)) == expected
        assert await acknowledged(other) == []
        assert set(await resumed(stage, "s")) == expected
        await reader.says(unsubscribe("t/+", "t/#"))
        await write(stage, 7)
        assert await acknowledged(reader) == []
        assert len(await acknowledged(worker)) == 7


async def test_a_topic_that_pulsars_clients_create_is_read_too() -> None:
    async with serving(rules=(MappingRule("#", "{each}"),)) as stage:
        reader = await stage.subscribed("r", ("t/+", 1))
        for local in ("t%2F1", "t%2F2%2F3", "u%2F1"):
            topic = (await stage.broker.topic(TopicName.parse(f"public/default/{local}"))).stored
            assert topic is not None
            await stored(topic.ledger, entry(b"x"))
        (found,) = await reader.receive()
        assert (found.topic, found.payload) == ("t/1", b"x")
        unread = ("persistent://public/default/t%2F2%2F3", "persistent://public/default/u%2F1")
        assert not any(map(stage.services.logs.find, unread))


async def test_a_topic_whose_creation_nobody_told_of_is_read_too() -> None:
    """A store over a network may say that anything has changed, after a broken connection."""
    stores = Stores()
    async with serving(stores, rules=(MappingRule("#", "{each}"),)) as stage:
        reader = await stage.subscribed("r", ("t/+", 1))
        watches, stores.metadata._watches = stores.metadata._watches, []
        for local in ("t%2F1", "u%2F1"):
            topic = (await stage.broker.topic(TopicName.parse(f"public/default/{local}"))).stored
            assert topic is not None
            await stored(topic.ledger, entry(b"x"))
        assert await reader.receive() == []
        stores.metadata._watches = watches
        stores.metadata._tell("/managed-ledgers/public/default/persistent")
        (found,) = await reader.receive()
        assert (found.topic, found.payload) == ("t/1", b"x")


async def test_a_session_with_qos_0_holds_nothing(stage: Stage) -> None:
    await begin(stage)
    await (await stage.subscribed("s", ("t/#", 0), clean=False)).leaves()
    await grow(stage)
    await stage.services.new_logs.read(whole=True)
    topic = (await stage.broker.topic(FUNNEL.partition(3))).stored
    assert topic is not None
    assert not topic.subscriptions


async def test_a_session_resumes_in_a_partition_that_it_has_never_seen(stage: Stage) -> None:
    """The partitions came, and nobody told the sessions (a crash)."""
    await begin(stage)
    await (await stage.subscribed("s", ("t/#", 1), clean=False)).leaves()
    await grow(stage)
    expected = await write(stage, 20)
    assert set(await resumed(stage, "s")) == expected


GONE = TopicName.parse("public/default/gone")


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_session_whose_topic_is_gone_is_resumed_and_reads_it_once_it_is_back(
    caplog: pytest.LogCaptureFixture, crashes: bool
) -> None:
    """Where nobody else may create it. What it gets then begins with the topic."""
    stores, rules = Stores(), (MappingRule("gone/#", "gone"),)
    never = NamespacePolicies(auto_topic_creation=AutoTopicCreation(False))
    async with serving(stores, rules=rules) as stage:
        device = await stage.subscribed("d", ("gone/1", 1), ("t", 1), clean=False)
        worker = await stage.subscribed("k", ("$share/g/gone/#", 1), clean=False)
        writer = await stage.connected("w")
        await writer.says(publish("gone/1", b"lost", qos=1, number=1))
        await writer.leaves()
        if not crashes:
            await device.leaves()
            await worker.leaves()
    async with serving(stores, rules=rules) as stage:
        await administration.delete_topic(stage.broker, GONE, force=True)
        await stage.broker.catalog.set_policies(NamespaceName.parse("public/default"), never)
        for _ in range(2):
            device, (connack, *_) = await stage.connects("d", clean=False)
            assert (connack.number, connack.reasons) == (1, (0,))
            worker, (connack, *_) = await stage.connects("k", clean=False)
            assert (connack.number, connack.reasons) == (1, (0,))
        missing = "the subscription gone/1 gets nothing of persistent://public/default/gone: "
        assert [line.startswith(missing) for line in caplog.messages].count(True) == 1
        writer = await stage.connected("w")
        await writer.says(publish("t", b"other", qos=1, number=1))
        got = await device.receive()
        assert [one.payload for one in got] == [b"other"]
        await device.acknowledges(*got)
        assert not await stage.services.logs.look_for_partitions()
        topic = await administration.create_topic(stage.broker, GONE)
        assert topic.stored is not None
        await stored(topic.stored.ledger, entry(b"back", key=b"gone/1"))
        assert await stage.services.logs.look_for_partitions()
        await stage.services.new_logs.read(whole=True)
        for client in (device, worker):
            assert [(one.topic, one.payload) for one in await client.receive()] == [
                ("gone/1", b"back")
            ]
        assert not await stage.services.logs.look_for_partitions()
