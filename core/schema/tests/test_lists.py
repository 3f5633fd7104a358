"""Lists of versions: kept in memory, and written over the version that was read."""

from __future__ import annotations

import pytest
import trio

from magnetar.core.kernel.errors import BadVersion, NotAllowed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.schema import records
from magnetar.core.schema.lists import ATTEMPTS_MAX, SchemaLists
from magnetar.core.schema.records import SchemaVersions, Subject

PATH = records.path_of(Subject("s"))


def longer(versions: SchemaVersions) -> SchemaVersions:
    return versions.with_one_more(versions.next_version + 1, "one")


async def test_a_list_that_is_not_there_is_changed_if_it_may_be_new() -> None:
    lists = SchemaLists(MemoryMetadata())
    assert await lists.change(PATH, longer) is None
    assert (await lists.known(PATH)).store_version == ABSENT
    assert await lists.change(PATH, longer, anew=True) == SchemaVersions()
    assert (await lists.known(PATH)).versions.count == 1
    assert await lists.change(PATH, lambda _: None) is None


async def test_two_brokers_change_one() -> None:
    metadata = MemoryMetadata()
    one, other = SchemaLists(metadata), SchemaLists(metadata)
    await one.change(PATH, longer, anew=True)
    await other.known(PATH)
    await one.change(PATH, longer)
    await other.change(PATH, longer)
    one.open()
    one.drop(PATH)
    assert (await one.known(PATH)).versions.next_version == 3
    known = await one.known(PATH)
    with pytest.raises(BadVersion):
        await other.write(PATH, known.versions, known.store_version + 1)
    with pytest.raises(BadVersion):
        await other.write(PATH, known.versions, ABSENT)


async def test_a_check_is_made_of_what_is_written_over() -> None:
    metadata = MemoryMetadata()
    lists = SchemaLists(metadata)
    await lists.change(PATH, longer, anew=True)
    seen: list[int] = []

    async def check(versions: SchemaVersions) -> None:
        seen.append(versions.count)
        if len(seen) == 1:
            await SchemaLists(metadata).change(PATH, longer)
        if versions.count == 3:
            raise NotAllowed("three are enough")

    await lists.change(PATH, longer, check)
    with pytest.raises(NotAllowed):
        await lists.change(PATH, longer, check)
    assert seen == [1, 2, 3]


async def test_others_who_are_always_faster() -> None:
    metadata = MemoryMetadata()
    lists, faster = SchemaLists(metadata), SchemaLists(metadata)
    await lists.change(PATH, longer, anew=True)

    async def check(_: SchemaVersions) -> None:
        await faster.catch_up()
        await faster.change(PATH, longer)

    with pytest.raises(BadVersion):
        await lists.change(PATH, longer, check)
    await lists.catch_up()
    assert (await lists.known(PATH)).versions.count == 1 + ATTEMPTS_MAX


async def test_one_task_at_a_time() -> None:
    lists, inside = SchemaLists(MemoryMetadata()), 0

    async def enter() -> None:
        nonlocal inside
        async with lists.alone_with(PATH):
            inside += 1
            await trio.lowlevel.checkpoint()
            assert inside == 1
            inside -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(enter)
