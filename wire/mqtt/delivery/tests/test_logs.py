"""Topics of core for MQTT's: created, loaded again, with partitions."""

from __future__ import annotations

from zlib import crc32

import trio
import trio.testing

from magnetar.core.broker import administration
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.policy.values import AutoTopicCreation
from magnetar.core.testing.bench import settled
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.mapping.rules import EACH, MappingRule
from magnetar.wire.mqtt.tests.peer import publish

FUNNEL = TopicName.parse("public/default/mqtt")


async def test_a_topic_that_is_created_stays(stage: Stage) -> None:
    log = await stage.services.logs.open_for("a/b")
    assert log.name == FUNNEL
    assert stage.services.logs.for_topic("a/b") is log
    assert stage.services.logs.for_topic("never/named") is log, "without a task"
    assert log.topic is not None
    assert log.topic.ledger.mixed
    assert not log.topic.policies.inactive_topics.delete_while_inactive


async def test_an_unloaded_topic_is_loaded_for_its_readers(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("t", 1))
    writer = await stage.connected("w")
    await writer.says(publish("t", b"0", qos=1, number=1))
    await stage.broker.unload(FUNNEL)
    await settled()
    (puback,) = await writer.says(publish("t", b"1", qos=1, number=2))
    assert puback.kind == "PUBACK"
    assert [one.payload for one in await reader.receive()] == [b"0", b"1"]


async def test_a_deleted_topic_is_created_again_for_its_readers(stage: Stage) -> None:
    reader = await stage.subscribed("r", ("t", 1))
    writer = await stage.connected("w")
    await writer.says(publish("t", b"0", qos=1, number=1))
    await stage.broker.delete(FUNNEL, force=True)
    await settled()
    await writer.says(publish("t", b"1", qos=1, number=2))
    assert [one.payload for one in await reader.receive()] == [b"0", b"1"]


async def test_a_topic_that_nobody_reads_is_forgotten(stage: Stage) -> None:
    logs = stage.services.logs
    first = await logs.open_for("t")
    await stage.broker.unload(FUNNEL)
    assert logs.for_topic("t") is None
    assert await logs.open_for("t") is not first


async def test_partitions(stage: Stage) -> None:
    """An MQTT topic is always in the same one, and subscribers read all of them."""
    await administration.create_partitioned(stage.broker, FUNNEL, 3)
    reader = await stage.subscribed("r", ("t/#", 1))
    writer = await stage.connected("w")
    topics = [f"t/{n}" for n in range(9)]
    answers = await writer.says(
        *(publish(topic, b"x", qos=1, number=n + 1) for n, topic in enumerate(topics))
    )
    assert [one.number for one in answers] == list(range(1, 10))
    assert sorted(one.topic for one in await reader.receive()) == topics
    logs = stage.services.logs
    for topic in topics:
        log = logs.for_topic(topic)
        assert log is not None
        assert log.name.partition_index == crc32(topic.encode()) % 3


async def test_more_partitions_than_before(stage: Stage) -> None:
    await administration.create_partitioned(stage.broker, FUNNEL, 1)
    reader = await stage.subscribed("r", ("t/#", 1))
    await administration.grow_partitioned(stage.broker, FUNNEL, 4)
    assert await stage.services.logs.look_for_partitions()
    assert not await stage.services.logs.look_for_partitions()
    client = reader.session.client
    assert client is not None
    await client.read_new_logs()
    writer = await stage.connected("w")
    await writer.says(*(publish(f"t/{n}", b"x", qos=1, number=n + 1) for n in range(9)))
    assert len(await reader.receive()) == 9


async def test_wildcards_over_topics_of_their_own() -> None:
    rules = (MappingRule("old/#", "{each}"),)
    async with serving(rules=rules) as stage:
        for topic in ("old/a", "old/b", "new"):
            await stage.services.logs.open_for(topic)
        names = [log.name.local for log in await stage.services.logs.sources_of("old/+")]
        assert names == ["old%2Fa", "old%2Fb"]
        names = [log.name.local for log in await stage.services.logs.sources_of("#")]
        assert sorted(names) == ["mqtt", "old%2Fa", "old%2Fb"]


async def test_a_deleted_topic_of_one_mqtt_topic_is_forgotten() -> None:
    """With its number of partitions, which is read every 10 s; also if it was read."""
    async with serving(rules=(MappingRule("old/#", EACH),)) as stage:
        logs, writer = stage.services.logs, await stage.connected("w")
        reader = await stage.subscribed("r", ("old/3", 1))
        for number in range(4):
            await writer.says(publish(f"old/{number}", b"x", qos=1, number=1))
        names = [TopicName.parse(f"public/default/old%2F{number}") for number in range(4)]
        assert all(logs.find(name.full) is not None for name in names)
        assert len(logs._partitions) == 4
        for name in names:
            await stage.broker.delete(name, force=True)
        await settled()
        assert [logs.find(name.full) is not None for name in names] == [False] * 3 + [True]
        assert len(logs._partitions) == 1
        await reader.leaves()
        await stage.broker.delete(names[3], force=True)
        assert len(logs._partitions) == 0
        await writer.says(publish("old/0", b"again", qos=1, number=1))
        assert len(logs._partitions) == 1


async def test_a_topic_that_comes_back_too_late_for_its_readers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving(rules=(MappingRule("old/#", EACH),)) as stage:
        logs, reader = stage.services.logs, await stage.subscribed("r", ("old/1", 1))
        never = NamespacePolicies(auto_topic_creation=AutoTopicCreation(False))
        await stage.broker.catalog.set_policies(NamespaceName.parse("public/default"), never)
        await stage.broker.delete(TopicName.parse("public/default/old%2F1"), force=True)
        await settled()
        assert len(logs._partitions) == 1
        await reader.leaves()
        await trio.sleep(60)
        assert len(logs._partitions) == 0
