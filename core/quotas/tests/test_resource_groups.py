"""The resource groups: records, and what becomes of live groups when they change."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator

import pytest
import trio

from magnetar.core.kernel.errors import InvalidName, NotAllowed, NotFound, StorageFailed
from magnetar.core.kernel.throttle import RateLimit
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.quotas import resource_groups
from magnetar.core.quotas.resource_group import NO_RATES, PATH, GroupRates, ResourceGroup
from magnetar.core.quotas.resource_groups import ResourceGroups
from magnetar.core.testing.bench import settled
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.metadata import overwrite


class Desk:
    """Groups over a store, and which of them had changes."""

    def __init__(self, metadata: MemoryMetadata) -> None:
        self.metadata = metadata
        self.changes: list[str] = []
        self.groups = ResourceGroups(metadata, FixedClock(), self._changed)
        self.groups.open()

    async def _changed(self, group: ResourceGroup) -> None:
        self.changes.append(group.name)

    async def live(self, name: str) -> ResourceGroup:
        group = await self.groups.find(name)
        assert group is not None
        return group


@pytest.fixture
async def desk(nursery: trio.Nursery) -> AsyncIterator[Desk]:
    desk = Desk(MemoryMetadata())
    nursery.start_soon(desk.groups.run)
    yield desk
    nursery.cancel_scope.cancel()


async def test_a_record_is_created_changed_and_deleted(desk: Desk) -> None:
    groups = desk.groups
    assert await groups.names() == []
    for unknown in (groups.get("g"), groups.delete("g")):
        with pytest.raises(NotFound, match="ResourceGroup does not exist"):
            await unknown
    await groups.put("g", GroupRates(publish_rate_in_msgs=5))
    await groups.put("g", GroupRates(dispatch_rate_in_msgs=7))
    await groups.put("g", GroupRates())
    assert await groups.get("g") == GroupRates(5, -1, 7, -1)
    assert await groups.exists("g")
    assert await groups.names() == ["g"]
    await groups.delete("g")
    assert not await groups.exists("g")


async def test_a_live_group_follows_its_record(desk: Desk) -> None:
    assert await desk.groups.find("") is None
    group = await desk.live("g")
    assert group.publish is None
    await desk.groups.put("g", GroupRates(5))
    assert group.publish is not None
    assert group.publish.limit == RateLimit(5)
    assert await desk.live("g") is group
    await desk.groups.put("g", GroupRates(5))
    assert desk.changes == ["g"]
    await desk.groups.delete("g")
    assert group.publish is None
    assert desk.changes == ["g", "g"]


async def test_it_follows_what_another_broker_writes(desk: Desk) -> None:
    other = Desk(desk.metadata)
    group = await desk.live("g")
    await other.groups.put("g", GroupRates(5))
    await settled()
    assert group.publish is not None
    await other.groups.delete("g")
    await settled()
    assert group.publish is None


async def test_a_group_without_topics_is_forgotten(desk: Desk) -> None:
    group = await desk.live("g")
    assert desk.groups.live() == [group]
    del group
    gc.collect()
    assert desk.groups.live() == []
    await desk.groups.put("g", GroupRates(5))
    assert (await desk.live("g")).publish is not None


async def test_all_are_read_again_when_the_root_is_reported(desk: Desk) -> None:
    groups = [await desk.live(name) for name in "ab"]
    for name in "abc":
        value = b'{"publishRateInMsgs": 5}'
        desk.metadata._values[f"{PATH}/{name}"] = Versioned(value, 0)  # nobody reports it
    desk.groups._paths.note(PATH)
    await desk.groups.settled()
    assert all(group.publish is not None for group in groups)
    assert desk.changes == ["a", "b"]


async def test_who_asks_while_it_is_read_gets_its_rates(desk: Desk) -> None:
    await desk.groups.put("g", GroupRates(5))
    get, found = desk.metadata.get, []

    async def slow(path: str) -> Versioned | None:
        read = await get(path)
        await trio.testing.wait_all_tasks_blocked(0.001)
        return read

    async def find() -> None:
        found.append(await desk.live("g"))
        assert found[-1].publish is not None

    desk.metadata.get = slow  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(find)
        await trio.lowlevel.checkpoint()
        nursery.start_soon(desk.groups.put, "g", GroupRates(6))
    assert all(group is found[0] for group in found)
    assert found[0].publish is not None
    assert found[0].publish.limit == RateLimit(6)


async def test_a_change_reaches_all_topics_if_who_makes_it_is_cancelled() -> None:
    desk = Desk(MemoryMetadata())  # nobody else puts in force what changes
    group = await desk.live("g")
    started, reached = trio.Event(), []

    async def slowly(changed: ResourceGroup) -> None:
        started.set()
        await trio.testing.wait_all_tasks_blocked(0.001)
        reached.append(changed)

    desk.groups._changed = slowly
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.groups.put, "g", GroupRates(5))
        await started.wait()
        nursery.cancel_scope.cancel()
    assert reached == []
    await desk.groups.settled()
    assert reached == [group]


async def test_it_is_asked_for_again_after_storage_has_failed(desk: Desk) -> None:
    await desk.groups.put("g", GroupRates(5))
    get = desk.metadata.get

    async def fail(_path: str) -> Versioned | None:
        raise StorageFailed("no")

    desk.metadata.get = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await desk.groups.find("g")
    desk.metadata.get = get  # type: ignore[method-assign]
    assert (await desk.live("g")).publish is not None


@pytest.mark.parametrize("record", [b"\xff", b"[]", b'{"publishRateInMsgs": "x"}'])
async def test_a_record_that_cannot_be_read_limits_nothing(desk: Desk, record: bytes) -> None:
    await overwrite(desk.metadata, f"{PATH}/g", record)
    assert (await desk.live("g")).publish is None
    assert await desk.groups.get("g") == NO_RATES
    await desk.groups.put("g", GroupRates(5))
    assert await desk.groups.get("g") == GroupRates(5, -1, -1, -1)


async def test_changes_at_one_time_are_all_kept(desk: Desk) -> None:
    get = desk.metadata.get

    async def slow(path: str) -> Versioned | None:
        read = await get(path)
        await settled()
        return read

    desk.metadata.get = slow  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        for sent in (GroupRates(1), GroupRates(None, 2), GroupRates(None, None, 3)):
            nursery.start_soon(desk.groups.put, "g", sent)
    desk.metadata.get = get  # type: ignore[method-assign]
    assert await desk.groups.get("g") == GroupRates(1, 2, 3, -1)


@pytest.mark.parametrize(
    "name", ["", ".", "..", " ", "a/b", "a\0", "a\nb", "\u202e", "x" * 5_000, "ä" * 3_000]
)
async def test_names_that_none_gets(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidName):
        await desk.groups.put(name, GroupRates(5))
    for asked in (desk.groups.get(name), desk.groups.delete(name)):
        with pytest.raises(NotFound):
            await asked
    assert not await desk.groups.exists(name)
    group = await desk.groups.find(name)
    assert group is None or group.publish is None


@pytest.mark.parametrize("name", ["group one", "Köln", "a?b#c", "x" * 3_000])
async def test_names_as_apaches_broker_has_them(desk: Desk, name: str) -> None:
    await desk.groups.put(name, GroupRates(5))
    assert await desk.groups.names() == [name]
    assert (await desk.live(name)).publish is not None
    await desk.groups.delete(name)


async def test_there_are_so_many_at_most(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_groups, "GROUPS_MAX", 2)
    for name in "ab":
        await desk.groups.put(name, GroupRates(5))
    with pytest.raises(NotAllowed):
        await desk.groups.put("c", GroupRates(5))
    await desk.groups.put("a", GroupRates(6))
    await desk.groups.delete("b")
    await desk.groups.put("c", GroupRates(5))
