"""Where a cursor is kept: one ledger at most, and nothing of another owner's is written over."""

import pytest

from magnetar.core.kernel.errors import Fenced, NotFound, StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.cursor.cursor_store import CursorRecord
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.testing.bench import Bench, settled


def value(ledger_id: int = -1, entry_id: int = 0) -> bytes:
    snapshot = formats.CursorSnapshot(mark_delete=(0, entry_id))
    info = formats.ManagedCursorInfo(cursors_ledger_id=ledger_id, snapshot=snapshot)
    return formats.encode_cursor(info)


async def created(desk: Bench) -> tuple[ManagedLedger, CursorRecord]:
    ledger = await desk.ledger()
    place = CursorRecord(desk.storage, ledger, "s/1")
    await place.create(value())
    return ledger, place


async def named(place: CursorRecord) -> int:
    """A fresh ledger, and the znode that names it."""
    writer = await place.begin_ledger()
    await place.name(writer.ledger_id, value(writer.ledger_id))
    return writer.ledger_id


async def test_a_znode_names_one_ledger_and_the_one_before_is_gone(desk: Bench) -> None:
    ledger, place = await created(desk)
    assert (place.ledger_id, place.switched_ms) == (-1, 0)
    first = await named(place)
    second = await named(place)
    assert list(desk.ledgers.ledgers) == [second]
    assert second != first
    assert (place.ledger_id, place.switched_ms) == (second, desk.clock.wall_ms())
    again = CursorRecord(desk.storage, ledger, "s/1")
    assert (await again.find()).cursors_ledger_id == again.ledger_id == second
    await again.name(-1, value())
    assert desk.ledgers.ledgers == {}


async def test_what_cannot_be_named_is_not_left_over(desk: Bench) -> None:
    _ledger, place = await created(desk)
    kept = await named(place)
    put = desk.metadata.put

    async def fail(path: str, value: bytes, expected: int) -> int:
        raise StorageFailed("no")

    desk.metadata.put = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await named(place)
    desk.metadata.put = put  # type: ignore[method-assign]
    assert list(desk.ledgers.ledgers) == [place.ledger_id] == [kept]
    await named(place)


async def test_another_owners_is_not_written_over(desk: Bench) -> None:
    ledger, place = await created(desk)
    other = CursorRecord(desk.storage, ledger, "s/1")
    await other.find()
    theirs = await named(other)
    with pytest.raises(Fenced) as refused:
        await named(place)
    assert isinstance(refused.value.__cause__, Fenced), "the record says which"
    assert ledger.state is LogState.CLOSED
    assert list(desk.ledgers.ledgers) == [theirs]


async def test_a_deletion_may_be_repeated(desk: Bench) -> None:
    ledger, place = await created(desk)
    await named(place)
    await place.delete()
    await place.delete()
    assert desk.ledgers.ledgers == {}
    with pytest.raises(NotFound, match="no cursor s/1 of persistent://public/default/t"):
        await CursorRecord(desk.storage, ledger, "s/1").find()


async def test_the_last_snapshot_counts_if_there_is_one(desk: Bench) -> None:
    _ledger, place = await created(desk)
    assert await place.last_snapshot() is None
    await named(place)
    assert await place.last_snapshot() is None, "nothing was saved yet"
    await named(place)  # looking has sealed the other
    stored = desk.ledgers.ledgers[place.ledger_id]
    for entry_id in (1, 2):
        snapshot = formats.CursorSnapshot(mark_delete=(0, entry_id))
        stored.append([formats.encode_snapshot(snapshot)], lambda _error: None)
    await settled()
    found = await place.last_snapshot()
    assert found is not None
    assert found.mark_delete == (0, 2)


async def test_of_snapshots_only_the_damaged_are_lost(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    _ledger, place = await created(desk)
    await named(place)
    stored = desk.ledgers.ledgers[place.ledger_id]
    for entry_id in range(5):
        snapshot = formats.CursorSnapshot(mark_delete=(0, entry_id))
        stored.append([formats.encode_snapshot(snapshot)], lambda _error: None)
    await settled()
    stored.damaged = {1, 3, 4}
    found = await place.last_snapshot()
    assert found is not None
    assert found.mark_delete == (0, 2)
    stored.damaged = set(range(5))
    assert await place.last_snapshot() is None
    assert [said.rpartition(": ")[0] for said in caplog.messages] == [
        "persistent://public/default/t: cursor s/1 goes back to where it was saved before",
        "persistent://public/default/t: cursor s/1 goes back to its znode",
    ]
