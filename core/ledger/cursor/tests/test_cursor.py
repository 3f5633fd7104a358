"""What a cursor says is stored is stored: saves, receipts, crashes between any two steps."""

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.cursor import cursor as module
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.log_rules import LogRules
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.testing.bench import Bench, Outcome, bench, settled, stored

NEVER = RollLimits()


@pytest.fixture
async def bench_(autojump_clock: MockClock) -> AsyncIterator[Bench]:
    async with bench(NEVER) as made:
        yield made


async def log_of(made: Bench, entries: int) -> ManagedLedger:
    ledger = await made.ledger()
    await stored(ledger, *[b"x"] * entries)
    return ledger


async def created(made: Bench, ledger: ManagedLedger, name: str = "s/1") -> Cursor:
    cursor = Cursor(made.storage, ledger, name, START, durable=True)
    await cursor.create()
    return cursor


async def opened(made: Bench, ledger: ManagedLedger, name: str = "s/1") -> Cursor:
    """The cursor as it is after a crash at this very moment."""
    cursor = Cursor(made.storage, ledger, name, START, durable=True)
    await cursor.open()
    return cursor


def state(cursor: Cursor) -> tuple[Position, list[object], list[object]]:
    acks = cursor.acks
    return acks.mark_delete, list(acks.ranges(100)), list(acks.partial(100))


async def test_many_changes_are_one_save(bench_: Bench) -> None:
    ledger = await log_of(bench_, 10)
    cursor = await created(bench_, ledger)
    for entry_id in range(5):
        cursor.ack_range(0, entry_id, entry_id)
    assert bench_.dirty_cursors == [cursor]
    await bench_.flush_cursors()
    assert len(bench_.ledgers.ledgers[1].entries) == 1
    cursor.ack_range(0, 7, 7)
    cursor.ack_bits((0, 9), 0b101, 3)
    await bench_.flush_cursors()
    assert len(bench_.ledgers.ledgers[1].entries) == 2
    assert state(await opened(bench_, ledger)) == state(cursor)
    assert state(cursor) == ((0, 4), [((0, 6), (0, 7))], [((0, 9), 0b101)])


async def test_a_policy_says_how_often_it_is_saved_unless_somebody_waits(bench_: Bench) -> None:
    ledger = await log_of(bench_, 10)
    ledger.rules = LogRules(NEVER, save_pause_seconds=10)
    cursor = await created(bench_, ledger)
    saved: list[int] = []
    for entry_id in range(6):
        cursor.ack_range(0, entry_id, entry_id)
        await bench_.flush_cursors()
        saved.append((await opened(bench_, ledger)).mark_delete[1])
        bench_.clock.forward(4)
    assert saved == [0, 0, 0, 3, 3, 3]
    cursor.ack_range(0, 6, 6)
    await cursor.saved()
    assert (await opened(bench_, ledger)).mark_delete == (0, 6)
    bench_.clock.forward(9)
    cursor.ack_range(0, 7, 7)
    await bench_.flush_cursors()
    assert (await opened(bench_, ledger)).mark_delete == (0, 6)
    assert set(bench_.dirty_cursors) == {cursor}
    ledger.rules = LogRules(NEVER)
    await bench_.flush_cursors()
    assert (await opened(bench_, ledger)).mark_delete == (0, 7)
    assert bench_.dirty_cursors == []


async def test_what_waits_for_the_rate_is_saved_at_the_end(bench_: Bench) -> None:
    ledger = await log_of(bench_, 10)
    ledger.rules = LogRules(NEVER, save_pause_seconds=10)
    cursor = await created(bench_, ledger)
    for entry_id in range(2):
        cursor.ack_range(0, entry_id, entry_id)
        await bench_.flush_cursors()
    await cursor.close()
    assert (await opened(bench_, ledger)).mark_delete == (0, 1)
    await bench_.flush_cursors()
    assert bench_.dirty_cursors == []


async def test_a_ledger_that_a_recovery_has_closed_is_noticed_by_nobody(bench_: Bench) -> None:
    ledger = await log_of(bench_, 10)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 0)
    await cursor.saved()
    await bench_.ledgers.open(1, recover=True)
    cursor.ack_range(0, 1, 1)
    await cursor.saved()
    assert cursor.place.ledger_id == 2
    assert 1 not in bench_.ledgers.ledgers
    assert state(await opened(bench_, ledger)) == state(cursor)


async def test_a_receipt_comes_after_storage() -> None:
    async with bench(NEVER, sync_at_once=False) as made:
        ledger = await made.ledger()
        ledger.append([b"x", b"y"], None, Outcome())
        await settled()
        made.ledgers.sync()
        cursor = await created(made, ledger)
        cursor.ack_range(0, 0, 0)
        log: list[object] = []
        first, second = Outcome(log, 1), Outcome(log, 2)
        cursor.when_saved(first)
        await settled()
        cursor.ack_range(0, 1, 1)
        cursor.when_saved(second)
        assert log == []
        assert len(made.ledgers.ledgers[1].entries) == 1, "one save at a time: the second follows"
        made.ledgers.sync()
        assert log == [1, 2]
        assert (first.result, second.result) == (None, None)
        assert len(made.ledgers.ledgers[1].entries) == 2
        assert (await opened(made, ledger)).mark_delete == (0, 1)


async def test_a_crash_at_any_step_of_the_first_save(bench_: Bench) -> None:
    """Created, named in the znode, written: whatever is there is a state the cursor had."""
    ledger = await log_of(bench_, 3)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 1)
    bench_.ledgers.sync_at_once = False
    seen = []
    put = bench_.metadata.put

    async def noting(path: str, value: bytes, expected: int) -> int:
        seen.append(state(await opened(bench_, ledger)))
        version = await put(path, value, expected)
        # another owner would seal the ledger as it is; here its writer goes on, so only read
        found = await bench_.metadata.get(path)
        assert found is not None
        seen.append(formats.decode_cursor(found.value).snapshot.mark_delete)
        return version

    bench_.metadata.put = noting  # type: ignore[method-assign]
    await bench_.flush_cursors()
    bench_.metadata.put = put  # type: ignore[method-assign]
    assert seen == [(START, [], []), (0, 1)], "empty ledger or none: the znode's own state holds"
    bench_.ledgers.sync()
    assert state(await opened(bench_, ledger)) == state(cursor)


async def test_a_full_ledger_is_replaced(bench_: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOTS_PER_LEDGER_MAX", 2)
    ledger = await log_of(bench_, 9)
    cursor = await created(bench_, ledger)
    for entry_id in range(5):
        cursor.ack_range(0, entry_id, entry_id)
        await bench_.flush_cursors()
        assert (await opened(bench_, ledger)).mark_delete == (0, entry_id)
        # who opens it seals it, as a crash would: go on with a fresh one
        cursor = await opened(bench_, ledger)
    assert len(bench_.ledgers.ledgers) == 2, "the log's, and one of the cursor's"
    for entry_id in range(5, 9):
        cursor.ack_range(0, entry_id, entry_id)
        await bench_.flush_cursors()
    assert len(bench_.ledgers.ledgers) == 2
    assert (await opened(bench_, ledger)).mark_delete == (0, 8)


async def test_a_clean_close_keeps_the_state_in_the_znode(bench_: Bench) -> None:
    ledger = await log_of(bench_, 9)
    cursor = await created(bench_, ledger)
    cursor.properties["a"] = "b"
    cursor.ack_range(0, 0, 3)
    await bench_.flush_cursors()
    cursor.ack_range(0, 5, 5)
    cursor.used(77)
    await cursor.close()
    assert list(bench_.ledgers.ledgers) == [0]
    again = await opened(bench_, ledger)
    assert state(again) == state(cursor)
    assert (again.properties, again.last_active_ms) == ({"a": "b"}, 77)
    assert again.statistics().ledger_id == -1


async def test_a_close_with_nothing_to_say_writes_nothing(bench_: Bench) -> None:
    """Thousands of idle topics are unloaded when the server stops."""
    ledger = await log_of(bench_, 1)
    cursor = await created(bench_, ledger)
    before = await bench_.metadata.get(cursor.place.path)
    await cursor.close()
    assert await bench_.metadata.get(cursor.place.path) == before


async def test_close_waits_for_the_save_under_way() -> None:
    async with bench(NEVER, sync_at_once=False) as made:
        ledger = await made.ledger()
        cursor = await created(made, ledger)
        outcome = Outcome()
        cursor.when_saved(outcome)
        await settled()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cursor.close)
            await settled()
            assert not outcome.times
            made.ledgers.sync()
        assert outcome.result is None
        late = Outcome()
        cursor.when_saved(late)
        assert isinstance(late.result, Fenced), "nobody waits for a cursor that is gone"
        assert list(made.ledgers.ledgers) == []


async def test_new_properties_are_stored(bench_: Bench) -> None:
    ledger = await log_of(bench_, 1)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    cursor.properties["a"] = "b"
    cursor.touched()
    await bench_.flush_cursors()
    again = await opened(bench_, ledger)
    assert (again.properties, again.mark_delete) == ({"a": "b"}, (0, 0))
    assert len(bench_.ledgers.ledgers) == 2


async def refuse(*_asked: object) -> int:
    raise StorageFailed("no")


async def test_without_a_ledger_the_znode_holds_the_state(
    bench_: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """As with fewer bookies than the policy of the topic wants: nothing was stored until then."""
    ledger = await log_of(bench_, 5)
    cursor = await created(bench_, ledger)
    bench_.ledgers.create_failure = StorageFailed("too few bookies")
    for entry in range(3):
        cursor.ack_range(0, entry, entry)
        outcome = Outcome()
        cursor.when_saved(outcome)
        await settled()
        assert (outcome.times, outcome.result) == (1, None)
        assert (await opened(bench_, ledger)).mark_delete == (0, entry)
    assert caplog.text.count("without a ledger") == 1
    bench_.ledgers.create_failure = None
    cursor.ack_range(0, 3, 3)
    await bench_.flush_cursors()
    assert cursor.place.ledger_id >= 0
    assert (await opened(bench_, ledger)).mark_delete == (0, 3)


async def test_a_failed_save_is_tried_again(bench_: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the cursor took itself for dirty and asked nobody to save it, ever again."""
    ledger = await log_of(bench_, 2)
    cursor = await created(bench_, ledger)
    bench_.ledgers.create_failure = StorageFailed("no")
    with monkeypatch.context() as broken:
        broken.setattr(bench_.metadata, "put", refuse)
        late = await save_in_vain(cursor)
    bench_.ledgers.create_failure = None
    await trio.sleep(module.RETRY_SECONDS)
    await settled()
    assert (await opened(bench_, ledger)).mark_delete == (0, 0)
    assert late.times == 1


async def save_in_vain(cursor: Cursor) -> Outcome:
    """The outcome of the save that waited behind the first."""
    cursor.ack_range(0, 0, 0)
    outcome, late = Outcome(), Outcome()
    cursor.when_saved(outcome)
    cursor.when_saved(late)
    await settled()
    assert isinstance(outcome.result, StorageFailed)
    return late


async def test_a_failed_append_begins_a_fresh_ledger_and_leaves_none_over(bench_: Bench) -> None:
    ledger = await log_of(bench_, 5)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    bench_.ledgers.ledgers[1].fail(StorageFailed("disk"))
    outcome = Outcome()
    cursor.ack_range(0, 1, 1)
    cursor.when_saved(outcome)
    await settled()
    assert isinstance(outcome.result, StorageFailed)
    await trio.sleep(module.RETRY_SECONDS)
    await settled()
    assert (await opened(bench_, ledger)).mark_delete == (0, 1)
    assert len(bench_.ledgers.ledgers) == 2


async def test_a_znode_that_cannot_be_written_leaves_no_ledger_over(bench_: Bench) -> None:
    ledger = await log_of(bench_, 1)
    cursor = await created(bench_, ledger)
    put = bench_.metadata.put

    async def fail(path: str, value: bytes, expected: int) -> int:
        raise StorageFailed("no")

    bench_.metadata.put = fail  # type: ignore[method-assign]
    cursor.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    assert list(bench_.ledgers.ledgers) == [0]
    bench_.metadata.put = put  # type: ignore[method-assign]
    await trio.sleep(module.RETRY_SECONDS)
    await settled()
    assert (await opened(bench_, ledger)).mark_delete == (0, 0)


async def test_a_snapshot_that_is_lost_or_damaged_leaves_the_znode(
    bench_: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await log_of(bench_, 4)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    cursor.ack_range(0, 1, 1)
    await bench_.flush_cursors()
    store = bench_.ledgers.ledgers[1]

    store.damaged = {0, 1}
    assert (await opened(bench_, ledger)).mark_delete == (0, 0)
    del bench_.ledgers.ledgers[1]
    assert (await opened(bench_, ledger)).mark_delete == (0, 0)
    said = "persistent://public/default/t: cursor s/1 goes back to its znode: "
    assert [message[: len(said)] for message in caplog.messages] == [said, said]


async def test_another_owner_fences_cursor_and_log(bench_: Bench) -> None:
    ledger = await log_of(bench_, 3)
    former = await created(bench_, ledger)
    other = await opened(bench_, ledger)
    other.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    outcome = Outcome()
    former.ack_range(0, 2, 2)
    former.when_saved(outcome)
    await settled()
    assert isinstance(outcome.result, Fenced)
    assert ledger.state is LogState.CLOSED
    await former.close()
    again = await opened(bench_, ledger)
    assert state(again) == ((0, 0), [], []), "nothing of the former owner's got through"
    assert len(bench_.ledgers.ledgers) == 2


async def test_delete_forgets_all_of_it(bench_: Bench) -> None:
    ledger = await log_of(bench_, 3)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 0)
    await bench_.flush_cursors()
    await cursor.delete()
    assert await bench_.metadata.get(cursor.place.path) is None
    assert list(bench_.ledgers.ledgers) == [0]


async def test_a_delete_that_fails_leaves_the_cursor_as_it_was(bench_: Bench) -> None:
    ledger = await log_of(bench_, 3)
    cursor = await created(bench_, ledger)
    delete = bench_.metadata.delete

    async def fail(path: str, expected: int) -> None:
        raise StorageFailed("no")

    bench_.metadata.delete = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await cursor.delete()
    bench_.metadata.delete = delete  # type: ignore[method-assign]
    cursor.ack_range(0, 0, 0)
    outcome = Outcome()
    cursor.when_saved(outcome)
    await settled()
    assert outcome.result is None
    assert (await opened(bench_, ledger)).mark_delete == (0, 0)


async def test_a_readers_cursor_is_in_memory_only(bench_: Bench) -> None:
    ledger = await log_of(bench_, 3)
    cursor = Cursor(bench_.storage, ledger, "r", (0, 0), durable=False)
    await cursor.create()
    assert cursor.backlog == 2
    outcome = Outcome()
    assert cursor.ack_to((0, 1)) == 1
    cursor.when_saved(outcome)
    assert outcome.times == 1
    await cursor.close()
    await cursor.delete()
    assert await bench_.metadata.get(cursor.place.path) is None
    assert bench_.dirty_cursors == []


async def test_where_reading_begins_when_ledgers_were_trimmed(bench_: Bench) -> None:
    ledger = await log_of(bench_, 2)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 1)
    await ledger.roll()
    await ledger.trim([0])
    assert (cursor.backlog, ledger.chain.has(cursor.read_from)) == (0, False)
    ((place),) = await stored(ledger, b"new")
    assert (cursor.backlog, cursor.read_from) == (1, place)
    await cursor.close()
    again = await opened(bench_, ledger)
    assert (again.backlog, again.read_from) == (1, place)


async def test_acknowledged_entries_are_cut_out(bench_: Bench) -> None:
    ledger = await log_of(bench_, 6)
    cursor = await created(bench_, ledger)
    assert not cursor.holed
    cursor.ack_range(0, 0, 0)
    cursor.ack_range(0, 3, 3)
    cursor.ack_bits((0, 4), 0b10, 2)
    assert cursor.holed
    whole = Slice(0, 0, [bytes([i]) for i in range(6)], None)
    parts = [(part.payloads, bits) for part, bits in cursor.unacked_parts(whole)]
    assert parts == [([b"\x01", b"\x02"], None), ([b"\x04", b"\x05"], {0: 0b10})]


async def test_one_task_tries_again_however_many_saves_fail(
    bench_: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each receipt that is asked for on a full disk used to leave one more."""
    started: list[Cursor] = []
    flush_later = Cursor._flush_later

    async def noted(self: Cursor) -> None:
        started.append(self)
        await flush_later(self)

    monkeypatch.setattr(Cursor, "_flush_later", noted)
    ledger = await log_of(bench_, 10)
    cursor = await created(bench_, ledger)
    bench_.ledgers.create_failure = StorageFailed("the disk is full")
    with monkeypatch.context() as broken:
        broken.setattr(bench_.metadata, "put", refuse)
        for entry in range(5):
            cursor.ack_range(0, entry, entry)
            outcome = Outcome()
            cursor.when_saved(outcome)
            while not outcome.times:
                await trio.lowlevel.checkpoint()
    assert len(started) == 1
    bench_.ledgers.create_failure = None
    await trio.sleep(2 * module.RETRY_SECONDS)
    assert (await opened(bench_, ledger)).mark_delete == (0, 4)


async def test_of_more_holes_than_are_saved_the_first_are(bench_: Bench) -> None:
    """What is acknowledged behind them is delivered again after a crash; nothing is skipped."""
    count = module.HOLES_SAVED_MAX + 1
    ledger = await log_of(bench_, 2 * count + 1)
    cursor = await created(bench_, ledger)
    for entry_id in range(1, 2 * count + 1, 2):
        cursor.ack_range(0, entry_id, entry_id)
    await bench_.flush_cursors()
    acked = cursor.acks.ranges(count)
    assert len(acked) == count
    again = (await opened(bench_, ledger)).acks
    assert again.mark_delete == cursor.mark_delete
    assert again.ranges(count) == acked[:-1]


@pytest.mark.parametrize("beyond", [(0, 3), (1 << 62, 0)])
async def test_up_to_a_place_beyond_the_end_is_up_to_the_end(
    bench_: Bench, beyond: Position
) -> None:
    """What is stored before the transaction ends was not acknowledged by it."""
    ledger = await log_of(bench_, 2)
    cursor = await created(bench_, ledger)
    cursor.hold_up_to((0, 1), (*beyond, 0, 0))
    await stored(ledger, b"later", b"and later")
    assert not cursor.pending.covers((0, 2))
    cursor.end_transaction((0, 1), committed=True)
    assert cursor.mark_delete == (0, 1)


@pytest.mark.parametrize("beyond", [(0, 1, 3), (0, 2, 2), (1 << 62, 0, 1 << 62)])
async def test_entries_beyond_the_end_are_not_held(
    bench_: Bench, beyond: tuple[int, int, int]
) -> None:
    """As acknowledgements outside of transactions are ignored there."""
    ledger = await log_of(bench_, 2)
    cursor = await created(bench_, ledger)
    cursor.hold((0, 1), [(0, 0, 0), beyond], [(0, 2, 0b01, 2), (1 << 62, 0, 0b01, 2)])
    await stored(ledger, b"later", b"and later")
    assert not cursor.pending.covers((0, 2))
    assert cursor.pending.left_of((0, 2), None) is None
    held = cursor.end_transaction((0, 1), committed=True)
    assert held.ranges[0][:2] == (0, 0)
    assert held.ranges[-1][2] <= 1
    assert not held.parts


async def test_nothing_is_held_of_what_is_beyond_the_end(bench_: Bench) -> None:
    ledger = await log_of(bench_, 2)
    cursor = await created(bench_, ledger)
    cursor.hold((0, 1), [(0, 2, 5)], [])
    assert not cursor.pending


async def test_what_is_done_among_consecutive_entries(bench_: Bench) -> None:
    ledger = await log_of(bench_, 10)
    cursor = await created(bench_, ledger)
    cursor.ack_range(0, 0, 1)
    cursor.ack_range(0, 4, 4)
    assert cursor.done_among((0, 1), 5) == 0b01001
    cursor.hold((0, 1), [(0, 2, 2)], [(0, 3, 0b00, 2)])
    assert cursor.done_among((0, 1), 5) == 0b01011, "of a batch not all is held that is in it"
    assert cursor.done_among((0, 5), 5) == 0
