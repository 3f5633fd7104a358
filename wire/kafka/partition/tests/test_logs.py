"""Logs are found by names and ids, are what their topic is, and go with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.errors import KafkaRefusal
from magnetar.wire.kafka.partition import logs as logs_module
from magnetar.wire.kafka.session.transactions.tests.test_transactions import producer
from magnetar.wire.kafka.tests.batch import batch

BASE = TopicName.parse("t")
NAME = BASE.partition(0)


async def test_names_of_one_topic_lead_to_one_log(stage: Stage) -> None:
    """What was written by one name is known by another."""
    client = await stage.client("t")
    once = batch(b"a", producer=(7, 0, 0))
    names = ["t", "public/default/t", "persistent://public/default/t"]
    results = [await client.produce(name, once) for name in names]
    assert [(part.error_code, part.base_offset) for part in results] == [(0, 0)] * 3


@pytest.mark.parametrize("way", ["unloaded", "deleted"])
async def test_logs_are_forgotten_with_their_topics(stage: Stage, way: str) -> None:
    client = await stage.client("t")
    for name in ("t", "public/default/t"):
        await client.produce(name, batch(b"a"))
    logs = stage.front.services.logs
    assert (len(logs._known), len(logs._of_topics)) == (2, 1)
    if way == "unloaded":
        await stage.broker.unload(NAME)
    else:
        await stage.broker.delete(NAME, force=True)
    assert (logs._known, logs._of_topics) == ({}, {})


async def test_a_log_is_at_hand_once_it_is_loaded(stage: Stage) -> None:
    await stage.client("t")
    logs = stage.front.services.logs
    assert logs.at_once("t", 0) is None
    found = await logs.get("t", 0)
    assert logs.at_once("t", 0) is found
    assert await logs.get("t", 0) is found


@pytest.mark.parametrize(
    ("name", "partition"),
    [("t", -1), ("t", 1), ("none", 0)],
)
async def test_partitions_that_are_not_there(stage: Stage, name: str, partition: int) -> None:
    await stage.client("t")
    with pytest.raises(TopicNotFound):
        await stage.front.services.logs.get(name, partition)
    assert stage.front.services.logs.at_once(name, partition) is None


async def test_a_topic_without_partitions_has_one(stage: Stage) -> None:
    await administration.create_topic(stage.broker, BASE)
    log = await stage.front.services.logs.get("t", 0)
    assert log.topic.name == BASE
    with pytest.raises(TopicNotFound):
        await stage.front.services.logs.get("t", 1)


async def test_an_id_leads_to_its_topic_and_to_no_later_one_of_that_name(stage: Stage) -> None:
    """KIP-516: who asks by id is not given a topic that was made anew by the same name."""
    await stage.client("t")
    logs = stage.front.services.logs
    old_id = (await logs.get("t", 0)).topic_id
    assert logs.by_id_at_once(old_id, 0) is None, "the name of the id is not known yet"
    log = await logs.by_id(old_id, 0)
    assert logs.by_id_at_once(old_id, 0) is log
    await administration.delete_partitioned(stage.broker, BASE, force=True)
    await stage.client("t")
    new = await logs.get("t", 0)
    assert new.topic_id != old_id
    assert logs.by_id_at_once(old_id, 0) is None
    with pytest.raises(KafkaRefusal) as refused:
        await logs.by_id(old_id, 0)
    assert refused.value.code == errors.UNKNOWN_TOPIC_ID
    assert await logs.by_id(new.topic_id, 0) is new


async def test_of_many_ids_the_oldest_are_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "NAMES_MAX", 2)
    await stage.client("a", "b", "c")
    logs = stage.front.services.logs
    ids = [(await logs.get(name, 0)).topic_id for name in "abc"]
    assert [await logs.name_of(each) for each in ids] == ["a", "b", "c"]
    assert [logs.name_at_once(each) for each in ids] == ["", "b", "c"]


async def test_offsets_are_those_of_the_topic(stage: Stage) -> None:
    one = await producer(stage)
    await one.client.produce("t", batch(b"plain"))
    await one.add()
    await one.write(b"a", b"b")
    log = await stage.front.services.logs.get("t", 0)
    assert (log.start, log.stable, log.end) == (0, 1, 3)
    await one.end(commit=True)
    assert (log.start, log.stable, log.end) == (0, 4, 4)


async def test_rules_change_with_the_policies(stage: Stage) -> None:
    await stage.client("t")
    log = await stage.front.services.logs.get("t", 0)
    before = log.rules()
    assert log.rules() is before, "they are not worked out for each batch"
    configs = {"max.message.bytes": "1000"}
    log.topic.set_policies(replace(log.topic.policies, configs=configs))
    assert log.rules() == replace(before, bytes_max=1000)


async def test_readers_hear_of_more_while_they_watch(stage: Stage) -> None:
    client = await stage.client("t")
    log = await stage.front.services.logs.get("t", 0)
    received: list[int] = []
    with log.watched(lambda: received.append(log.end)):
        await client.produce("t", batch(b"a"))
    await client.produce("t", batch(b"b"))
    assert received == [1]
