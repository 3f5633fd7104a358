"""The marks of ledgers that lack replicas."""

import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import (
    UnderReplicatedLedger,
    UnderReplication,
    under_replicated,
)
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.kernel.errors import AlreadyExists, Corrupted, NotFound, Unsupported
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import overwrite

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "id")
PARENT = "/ledgers/underreplication/ledgers"


async def test_they_are_found_wherever_they_are() -> None:
    store = MemoryMetadata()
    assert await under_replicated(store, CLUSTER) == []
    for path, text in {
        "0000/0000/0000/0007/urL0000000007": 'replica: "a:1"\nreplica: "b"\nctime: 12\n',
        "0000/0001/2a05/f200/urL5000000000": 'replica: "a:1"\n',
        "0000/0000/0000/0001/urL0000000001": "",
        "0000/0000/0000/0001/other": "",
    }.items():
        await store.put(f"{PARENT}/{path}", text.encode(), ABSENT)
    assert await under_replicated(store, CLUSTER) == [
        UnderReplicatedLedger(1, ()),
        UnderReplicatedLedger(7, ("a:1", "b"), 12),
        UnderReplicatedLedger(5_000_000_000, ("a:1",)),
    ]


@pytest.fixture
async def marks() -> UnderReplication:
    found = UnderReplication(MemoryMetadata(), CLUSTER)
    await found.prepare()
    await found.prepare()
    return found


async def test_what_apaches_tools_expect_is_there(marks) -> None:
    layout = await marks.store.get("/ledgers/underreplication/LAYOUT")
    assert layout is not None
    assert layout.value == b'type: "BASIC"\nversion: 1\n'


async def test_another_layout_is_refused() -> None:
    store = MemoryMetadata()
    await store.put("/ledgers/underreplication/LAYOUT", b'type: "BASIC"\nversion: 2\n', ABSENT)
    with pytest.raises(Unsupported):
        await UnderReplication(store, CLUSTER).prepare()


async def test_a_mark_gains_bookies(marks) -> None:
    assert await marks.mark(7, ["b", "a"], 5)
    path = f"{PARENT}/0000/0000/0000/0007/urL0000000007"
    stored = await marks.store.get(path)
    assert stored.value == b'replica: "a"\nreplica: "b"\nctime: 5\n'
    assert not await marks.mark(7, ["a"], 6)
    assert await marks.mark(7, ["c"], 7)
    assert await marks.marked(7) == (UnderReplicatedLedger(7, ("a", "b", "c"), 7), 2)
    assert await marks.marked(8) is None


async def test_what_was_marked_again_stays_marked(marks) -> None:
    await marks.mark(7, ["a"], 5)
    _, version = await marks.marked(7)
    await marks.mark(7, ["b"], 6)
    assert not await marks.unmark(7, version)
    await marks.mark(7, ["a"], 7)
    assert not await marks.unmark(7, version + 1), "it was lost again, after it had been back"
    assert await marks.unmark(7, version + 2)
    assert await marks.unmark(7, version + 2), "by somebody else: it lacks nothing"
    assert await marks.store.children(PARENT) == []


async def test_all_of_it_can_be_suspended(marks) -> None:
    assert await marks.is_enabled()
    await marks.disable()
    with pytest.raises(AlreadyExists):
        await marks.disable()
    assert not await marks.is_enabled()
    await marks.enable()
    with pytest.raises(NotFound):
        await marks.enable()


async def test_the_delay_may_be_written_again(marks) -> None:
    assert await marks.delay() is None
    await marks.set_delay(30)
    assert await marks.delay() == (30, 0)
    await marks.set_delay(30)
    assert await marks.delay() == (30, 1), "which is a request"
    await overwrite(marks.store, "/ledgers/underreplication/lostBookieRecoveryDelay", b"soon")
    with pytest.raises(Corrupted):
        await marks.delay()


async def test_when_all_ledgers_were_checked(marks) -> None:
    assert await marks.checked_ms() is None
    await marks.set_checked(1_700_000_000_000)
    await marks.set_checked(1_700_000_000_001)
    assert await marks.checked_ms() == 1_700_000_000_001
    await overwrite(marks.store, "/ledgers/underreplication/checkallledgersctime", b"\xff")
    with pytest.raises(Corrupted):
        await marks.checked_ms()


async def test_who_has_a_lock_is_told_as_far_as_it_says(marks) -> None:
    assert await marks.lock_holder(7) is None
    await marks.store.put(marks.lock_of(7), b'bookieId: "10.0.0.5:3181"\n', ABSENT)
    assert await marks.lock_holder(7) == "10.0.0.5:3181"
    await overwrite(marks.store, marks.lock_of(7), b"")
    assert await marks.lock_holder(7) == "a client without a name"
