"""Ids of topics: the same for ever, never the same again."""

from __future__ import annotations

import trio

from magnetar.core.broker import administration
from magnetar.core.broker.topic_ids import TopicIds
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.metadata import overwrite

NAME = TopicName.parse("t")


async def test_asked_again_and_after_a_restart() -> None:
    metadata = MemoryMetadata()
    ids = TopicIds(metadata)
    first = await ids.of(NAME)
    assert len(first) == 16
    assert first != bytes(16)
    assert await ids.of(NAME) == first == await TopicIds(metadata).of(NAME)
    assert await ids.name_of(first) == NAME
    assert await ids.of(TopicName.parse("other")) != first


async def test_two_who_ask_at_once_hear_the_same() -> None:
    metadata, received = MemoryMetadata(), []

    async def ask() -> None:
        received.append(await TopicIds(metadata).of(NAME))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert len(set(received)) == 1


async def test_an_id_of_nobody() -> None:
    assert await TopicIds(MemoryMetadata()).name_of(b"x" * 16) is None


async def test_a_crash_between_two_writes_leaves_an_id_that_is_nobodys() -> None:
    metadata = MemoryMetadata()
    await overwrite(metadata, "/magnetar/topics-by-id/" + (b"x" * 16).hex(), NAME.full.encode())
    ids = TopicIds(metadata)
    assert await ids.name_of(b"x" * 16) is None
    assert await ids.of(NAME) != b"x" * 16


async def test_who_comes_back_is_another() -> None:
    async with running(Stores()) as broker:
        for made, gone in (
            (administration.create_topic, administration.delete_topic),
            (_partitioned, administration.delete_partitioned),
        ):
            seen = set()
            for _ in range(2):
                await made(broker, NAME)
                seen.add(await broker.topic_ids.of(NAME))
                await gone(broker, NAME, force=True)
            assert len(seen) == 2
            for each in seen:
                assert await broker.topic_ids.name_of(each) is None


async def test_a_namespace_takes_its_ids_along() -> None:
    async with running(Stores()) as broker:
        await _partitioned(broker, NAME)
        known = await broker.topic_ids.of(NAME)
        await administration.delete_namespace(
            broker, NamespaceName.parse("public/default"), force=True
        )
        assert await broker.topic_ids.name_of(known) is None


async def _partitioned(broker: object, name: TopicName) -> None:
    await administration.create_partitioned(broker, name, 2)  # type: ignore[arg-type]
