"""Topics that Kafka's clients make: stored with their configs, once, and not deleted when idle."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import LogLimits
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.parts import ConfigValue
from magnetar.wire.kafka.messages.topics import CreateTopic, CreateTopicsRequest
from magnetar.wire.kafka.session.topics import creation, internal

NAME = TopicName.parse("t")


async def create(stage: Stage, partitions: int, expected: dict[str, str]) -> None:
    await creation.create(stage.broker, stage.front.services.defaults, NAME, partitions, expected)


async def test_what_a_topic_is_made_with_is_told_and_kept(stage: Stage) -> None:
    client = await stage.client()
    expected = [ConfigValue(name="retention.ms", value="1000")]
    topic = CreateTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=[], configs=expected
    )
    (results,) = (await client.exchange(CreateTopicsRequest(topics=[topic]), 7)).topics
    assert {one.name: (one.value, one.config_source) for one in results.configs}[
        "retention.ms"
    ] == (
        "1000",
        1,
    )
    effective = await stage.broker.catalog.effective(TopicName.parse("t"))
    assert effective.log_limits == LogLimits(age_ms=1000)
    assert not effective.inactive_topics.delete_while_inactive


async def test_each_partition_is_a_topic_of_ours(stage: Stage) -> None:
    await create(stage, 3, {})
    assert await stage.broker.catalog.partitions(NAME) == 3
    assert [await stage.broker.exists(NAME.partition(index)) for index in range(4)] == [
        *(True, True, True),
        False,
    ]


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_topic_of_another_protocol_is_there_already(stage: Stage, partitions: int) -> None:
    if partitions:
        await administration.create_partitioned(stage.broker, NAME, partitions)
    else:
        await administration.create_topic(stage.broker, NAME)
    assert await creation.is_there(stage.broker, NAME)
    with pytest.raises(AlreadyExists):
        await create(stage, 1, {"retention.ms": "1000"})
    effective = await stage.broker.catalog.effective(NAME)
    assert effective.log_limits is None, "its policies are left alone"


async def test_the_internal_topic_cannot_be_made(stage: Stage) -> None:
    with pytest.raises(AlreadyExists):
        await creation.check_is_new(stage.broker, TopicName.parse(internal.OFFSETS))


async def test_of_two_who_make_it_at_once_one_does(stage: Stage) -> None:
    codes: list[str] = []

    async def make(retention: str) -> None:
        try:
            await create(stage, 1, {"retention.ms": retention})
            codes.append(retention)
        except AlreadyExists:
            codes.append("refused")

    async with trio.open_nursery() as nursery:
        for retention in ("1000", "2000"):
            nursery.start_soon(make, retention)
    (made,) = set(codes) - {"refused"}
    assert sorted(codes) == sorted(["refused", made])
    effective = await stage.broker.catalog.effective(NAME)
    assert effective.log_limits == LogLimits(age_ms=int(made))
