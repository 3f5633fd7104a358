"""What is stored of a group."""

import pytest

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.errors import Corrupted, NotCoordinator
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.wire.kafka.groups.group_records import GROUPS, GroupRecord, GroupRecords


async def test_from_the_first_commit_to_the_end() -> None:
    store = MemoryMetadata()
    records = GroupRecords(store)
    await records.note("a/b", "classic", "consumer", 0)
    assert await records.names() == [], "who commits nothing leaves nothing"
    await records.ensure("a/b", GroupRecord("classic", "consumer"))
    await records.ensure("a/b", GroupRecord())
    assert await GroupRecords(store).find("a/b") == GroupRecord("classic", "consumer")
    await records.note("a/b", "consumer", "consumer", 7)
    assert await GroupRecords(store).find("a/b") == GroupRecord("consumer", "consumer", 7)
    await records.ensure("a/b", GroupRecord(ages_early=True))
    assert await records.find("a/b") == GroupRecord("consumer", "consumer", 7, ages_early=True)
    assert await records.names() == ["a/b"]
    await records.delete("a/b")
    await records.delete("a/b")
    assert await records.find("a/b") is None
    assert await store.children(GROUPS) == []


async def test_nothing_is_written_that_is_known() -> None:
    store = MemoryMetadata()
    records = GroupRecords(store)
    await records.ensure("g", GroupRecord())
    written: list[str] = []
    store.watch(GROUPS, written.append)
    await records.ensure("g", GroupRecord())
    await records.note("g", "classic", "", 0)
    assert written == []


async def test_another_coordinators_record_is_not_written_over() -> None:
    store = MemoryMetadata()
    ours, theirs = GroupRecords(store), GroupRecords(store)
    await ours.ensure("g", GroupRecord("classic", "consumer"))
    await theirs.note("g", "classic", "consumer", 5)
    with pytest.raises(NotCoordinator):
        await ours.note("g", "consumer", "consumer", 9)
    assert await ours.find("g") == GroupRecord("classic", "consumer", 5)
    await ours.note("g", "consumer", "consumer", 0)
    with pytest.raises(NotCoordinator):
        await theirs.note("g", "classic", "consumer", 1)
    assert await GroupRecords(store).find("g") == GroupRecord("consumer", "consumer", 0)


async def test_of_two_who_write_the_first_record_one_wins() -> None:
    store = MemoryMetadata()
    ours, theirs = GroupRecords(store), GroupRecords(store)
    put = store.put

    async def after_theirs(path: str, value: bytes, expected: int) -> int:
        store.put = put  # type: ignore[method-assign]
        await theirs.ensure("g", GroupRecord("consumer", "consumer"))
        return await put(path, value, expected)

    store.put = after_theirs  # type: ignore[method-assign]
    with pytest.raises(NotCoordinator):
        await ours.ensure("g", GroupRecord())
    await ours.ensure("g", GroupRecord())
    assert await ours.find("g") == GroupRecord("consumer", "consumer")


async def test_a_former_coordinator_changes_nothing_any_more() -> None:
    store = MemoryMetadata()
    peer = Peer(1)
    table = OwnershipTable(peer)
    former, present = GroupRecords(store, table), GroupRecords(store)
    await former.ensure("g", GroupRecord("classic", "consumer"))
    table.groups["g"] = peer
    await present.ensure("g", GroupRecord("classic", "consumer"))
    for change in (
        former.note("g", "classic", "consumer", 12_345),  # it takes the group for empty
        former.note("g", "classic", "consumer", 12_345),
        former.delete("g"),
        former.ensure("g", GroupRecord("classic", ages_early=True)),
    ):
        with pytest.raises(NotCoordinator):
            await change
    await present.note("g", "consumer", "consumer", 0)
    assert await present.find("g") == GroupRecord("consumer", "consumer", 0)


async def test_a_record_that_cannot_be_read_is_corrupted() -> None:
    store = MemoryMetadata()
    await store.put(f"{GROUPS}/g", b"[", ABSENT)
    with pytest.raises(Corrupted, match="the record of group g cannot be read"):
        await GroupRecords(store).find("g")
