"""Snapshots in a record and in a cursor: what is written is read, and no other owner's is lost."""

from __future__ import annotations

import msgspec
import pytest

from magnetar.core.kernel.errors import Corrupted, Fenced, StorageFailed
from magnetar.core.ledger.fold.fold import Snapshot, SnapshotStore
from magnetar.core.ledger.fold.snapshots import CursorSnapshots, MetadataSnapshots, Numbers
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.testing.bench import Bench, stored
from magnetar.core.testing.metadata import overwrite

PATH = "/magnetar/snapshots/t"


def in_record(desk: Bench, ledger: ManagedLedger) -> SnapshotStore[Numbers]:
    decode = msgspec.msgpack.Decoder(Snapshot[Numbers]).decode
    return MetadataSnapshots(desk.storage, ledger, PATH, msgspec.msgpack.encode, decode)


def in_cursor(desk: Bench, ledger: ManagedLedger) -> SnapshotStore[Numbers]:
    return CursorSnapshots(desk.storage, ledger, "c")


each_store = pytest.mark.parametrize("store", [in_record, in_cursor])


@each_store
async def test_the_last_one_is_read(desk: Bench, store: type[SnapshotStore[Numbers]]) -> None:
    ledger = await desk.ledger()
    places = await stored(ledger, b"a", b"b")
    snapshots = store(desk, ledger)
    assert await snapshots.read() is None
    for place, number in zip(places, (1, 2), strict=True):
        await snapshots.write(Snapshot(place, {"p": 0}, ledger.ledgers.created_ms))
        await snapshots.write(Snapshot(place, {"p": number}, ledger.ledgers.created_ms))
        snapshots = store(desk, ledger)  # the next owner's
        found = await snapshots.read()
        assert found is not None
        assert (found.position, found.image) == (place, {"p": number})


@each_store
@pytest.mark.parametrize("something", [True, False])
async def test_a_close_is_the_last_write(
    desk: Bench, store: type[SnapshotStore[Numbers]], something: bool
) -> None:
    ledger = await desk.ledger()
    places = await stored(ledger, b"a", b"b")
    snapshots = store(desk, ledger)
    await snapshots.write(Snapshot(places[0], {"p": 1}, 5))
    last = Snapshot(places[1], {"p": 2}, 5)
    await snapshots.close(last if something else None)
    found = await store(desk, ledger).read()
    assert found is not None
    assert found.position == places[something]


@each_store
@pytest.mark.parametrize("known", [True, False])
async def test_deleted_there_is_none(
    desk: Bench, store: type[SnapshotStore[Numbers]], known: bool
) -> None:
    ledger = await desk.ledger()
    snapshots = store(desk, ledger)
    await snapshots.write(Snapshot((-1, -1), {"p": 1}, 5))
    await (snapshots if known else store(desk, ledger)).delete()
    assert await store(desk, ledger).read() is None
    await store(desk, ledger).delete()


@each_store
async def test_what_was_not_read_may_be_written_over(
    desk: Bench, store: type[SnapshotStore[Numbers]]
) -> None:
    """Whoever begins anew does not ask what there was."""
    ledger = await desk.ledger()
    await store(desk, ledger).write(Snapshot((-1, -1), {"p": 1}, 5))
    await store(desk, ledger).write(Snapshot((-1, -1), {"p": 2}, 5))
    found = await store(desk, ledger).read()
    assert found is not None
    assert found.image == {"p": 2}


@each_store
async def test_nobody_can_read_it_so_it_is_written_over(
    desk: Bench, store: type[SnapshotStore[Numbers]]
) -> None:
    ledger = await desk.ledger()
    path = PATH if store is in_record else f"{ledger.path}/c"
    await overwrite(desk.metadata, path, b"\xff junk")
    snapshots = store(desk, ledger)
    with pytest.raises(Corrupted):
        await snapshots.read()
    await snapshots.write(Snapshot((-1, -1), {"p": 1}, 5))
    found = await store(desk, ledger).read()
    assert found is not None
    assert found.image == {"p": 1}


@each_store
async def test_another_owners_is_not_written_over(
    desk: Bench, store: type[SnapshotStore[Numbers]]
) -> None:
    ledger, theirs = await desk.ledger(), await desk.ledger()
    ours = store(desk, ledger)
    await ours.write(Snapshot((-1, -1), {"p": 1}, 5))
    other = store(desk, theirs)
    await other.read()
    await other.write(Snapshot((-1, -1), {"p": 2}, 5))
    with pytest.raises((Fenced, StorageFailed)):
        await ours.write(Snapshot((-1, -1), {"p": 3}, 5))
    with pytest.raises(Fenced):
        await ours.write(Snapshot((-1, -1), {"p": 4}, 5))
    assert ledger.state is LogState.CLOSED
    found = await store(desk, theirs).read()
    assert found is not None
    assert found.image == {"p": 2}


async def test_who_reads_a_record_fences_the_former_owner_at_once(desk: Bench) -> None:
    ledger = await desk.ledger()
    ours = in_record(desk, ledger)
    await ours.write(Snapshot((-1, -1), {"p": 1}, 5))
    await in_record(desk, await desk.ledger()).read()
    with pytest.raises(Fenced):
        await ours.write(Snapshot((-1, -1), {"p": 2}, 5))


@each_store
async def test_a_write_that_failed_may_be_repeated(
    desk: Bench, store: type[SnapshotStore[Numbers]]
) -> None:
    ledger = await desk.ledger()
    snapshots = store(desk, ledger)
    await snapshots.read()
    put = desk.metadata.put

    async def put_and_fail(path: str, value: bytes, expected: int) -> int:
        await put(path, value, expected)
        raise StorageFailed("nobody knows whether that happened")

    desk.metadata.put = put_and_fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await snapshots.write(Snapshot((-1, -1), {"p": 1}, 5))
    desk.metadata.put = put  # type: ignore[method-assign]
    await snapshots.write(Snapshot((-1, -1), {"p": 2}, 5))
    found = await store(desk, ledger).read()
    assert found is not None
    assert found.image == {"p": 2}
