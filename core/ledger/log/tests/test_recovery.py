"""What is found of a log whose last owner is no more, whatever it left behind."""

from __future__ import annotations

import pytest

from magnetar.core.entry import header
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.ledger_owner import properties_of
from magnetar.core.ledger.log.ledger_list_record import FIRST_INDEX
from magnetar.core.ledger.log.recovery import RecoveredLog, find
from magnetar.core.testing.bench import NAME, Bench, bench
from magnetar.core.testing.metadata import overwrite


async def ledger_with(desk: Bench, *indexes: int, closed: bool) -> int:
    """A ledger whose entries have these indexes."""
    ledger = await desk.ledgers.create({})
    for index in indexes:
        ledger.entries += header.headers(1, None, 0, index)
    ledger.last_confirmed = len(indexes) - 1
    ledger.closed = closed
    return ledger.ledger_id


async def found(desk: Bench, *ledgers: formats.LedgerEntryInfo, **properties: str) -> RecoveredLog:
    info = formats.ManagedLedgerInfo(ledgers=ledgers, properties=properties)
    await overwrite(desk.metadata, "/x", formats.encode_managed_ledger(info))
    stored = await desk.metadata.get("/x")
    assert stored is not None
    return await find(desk.storage, NAME, stored)


def listed(ledger_id: int, entries: int = 0, *, closed: bool = False) -> formats.LedgerEntryInfo:
    first = {FIRST_INDEX: "0"} if not ledger_id else {}
    return formats.LedgerEntryInfo(ledger_id, entries, 10, 1 if closed else 0, first)


async def test_an_unsealed_ledger_is_sealed_and_tells_the_index() -> None:
    async with bench() as desk:
        ledger_id = await ledger_with(desk, 5, 6, 9, closed=False)
        log = await found(desk, listed(ledger_id))
        assert (log.confirmed, log.next_index, log.changed) == ((ledger_id, 2), 10, True)
        assert desk.ledgers.ledgers[ledger_id].closed


async def test_a_log_that_was_closed_well_is_taken_as_it_is() -> None:
    async with bench() as desk:
        ledger_id = await ledger_with(desk, 0, 1, closed=True)
        properties = {"magnetar.next-index": "2"}
        log = await found(desk, listed(ledger_id, 2, closed=True), **properties)
        assert (log.confirmed, log.next_index, log.changed) == ((ledger_id, 1), 2, False)
        assert log.doomed == []


async def test_a_log_of_another_broker_has_no_index_of_ours_in_its_list() -> None:
    async with bench() as desk:
        ledger_id = await ledger_with(desk, 40, 41, closed=True)
        log = await found(desk, listed(ledger_id, 2, closed=True))
        assert log.next_index == 42


async def test_empty_and_missing_ledgers_leave_the_list(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as desk:
        full = await ledger_with(desk, 0, closed=True)
        empty = await ledger_with(desk, closed=False)
        log = await found(desk, listed(full, 1, closed=True), listed(empty), listed(99))
        assert [segment.ledger_id for segment in log.segments] == [full]
        assert log.doomed == [empty, 99]
        assert (log.confirmed, log.next_index, log.changed) == ((full, 0), 1, True)
    assert caplog.messages == ["persistent://public/default/t: ledger 99 is listed but not there"]


async def test_a_last_ledger_that_is_lost_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as desk:
        log = await found(desk, listed(99, 7, closed=True))
        assert (log.segments, log.doomed) == ([], [99])
    assert caplog.messages == [
        "persistent://public/default/t: ledger 99 and its 7 entries are lost"
    ]


async def test_two_unsealed_ledgers() -> None:
    """Sealing the first had failed when the second was begun."""
    async with bench() as desk:
        first = await ledger_with(desk, 0, 1, closed=False)
        second = await ledger_with(desk, 2, closed=False)
        log = await found(desk, listed(first), listed(second))
        assert [segment.entries for segment in log.segments] == [2, 1]
        assert log.next_index == 3


async def test_a_former_owner_is_fenced_before_its_doomed_ledgers_are_deleted() -> None:
    """It may be about to give one its place in the list."""
    async with bench() as desk:
        ledger_id = await ledger_with(desk, 0, 1, closed=True)
        properties = {"magnetar.next-index": "2", "magnetar.doomed": "77"}
        log = await found(desk, listed(ledger_id, 2, closed=True), **properties)
        assert (log.changed, log.doomed) == (True, [77])


async def test_ledgers_of_others_leave_the_list_and_are_left_alone() -> None:
    async with bench() as desk:
        theirs = (await desk.ledgers.create(properties_of("t/n/persistent/theirs"))).ledger_id
        for entry in (listed(theirs), listed(theirs, 3, closed=True)):
            log = await found(desk, entry)
            assert (log.segments, log.doomed, log.changed) == ([], [theirs], True)
        assert not desk.ledgers.ledgers[theirs].closed, "its writer goes on"


async def test_a_ledger_that_cannot_be_recovered_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def undecided(*_: object, **__: object) -> None:
        raise StorageFailed("it cannot be decided")

    async with bench() as desk:
        ledger_id = await ledger_with(desk, 0, closed=False)
        with monkeypatch.context() as patch:
            patch.setattr(desk.ledgers, "open", undecided)
            for _ in range(2):
                with pytest.raises(StorageFailed):
                    await found(desk, listed(ledger_id))
        assert (await found(desk, listed(ledger_id))).confirmed == (ledger_id, 0)
    assert caplog.messages == [
        f"persistent://public/default/t: ledger {ledger_id} cannot be recovered: "
        "it cannot be decided"
    ]
