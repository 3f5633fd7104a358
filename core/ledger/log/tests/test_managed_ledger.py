"""The table of states in `managed_ledger.py`, failures at every step, and what survives them."""

import re
from collections.abc import AsyncIterator

import pytest
import trio
from msgspec import structs

from magnetar.core.entry import header
from magnetar.core.kernel.errors import BrokerError, Fenced, StorageFailed, Terminated
from magnetar.core.ledger import formats
from magnetar.core.ledger.log import managed_ledger
from magnetar.core.ledger.log.chain import START
from magnetar.core.ledger.log.managed_ledger import LEAVES, LogState, ManagedLedger
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.testing.bench import NAME, Bench, Outcome, bench, settled, stored


@pytest.fixture
async def at_once() -> AsyncIterator[Bench]:
    """Storage that confirms without being asked."""
    async with bench() as made:
        yield made


@pytest.fixture
async def slow() -> AsyncIterator[Bench]:
    """Storage that confirms when told to."""
    async with bench(sync_at_once=False) as made:
        yield made


async def indexes(ledger: ManagedLedger) -> list[int]:
    found = []
    for segment in ledger.chain.segments:
        last = ledger.chain.last_entry_of(segment)
        if last >= 0:
            run = await ledger.read((segment.ledger_id, 0), last + 1, 1 << 20)
            found += [header.read(entry).index for entry in run.stored()]
    return found


# -- appending -------------------------------------------------------------------------------


async def test_the_first_append_opens_a_ledger_and_others_wait_for_it(slow: Bench) -> None:
    ledger = await slow.ledger()
    assert ledger.state is LogState.IDLE
    a, b = Outcome(), Outcome()
    ledger.append([b"a"], None, a)
    assert ledger.state is LogState.OPENING
    ledger.append([b"b"], None, b)
    await settled()
    assert ledger.state is LogState.WRITING
    assert (a.times, b.times) == (0, 0), "nothing is confirmed before storage says so"
    assert ledger.chain.confirmed == START
    slow.ledgers.sync()
    assert (a.result, b.result) == ((0, 0), (0, 1))
    assert ledger.chain.confirmed == (0, 1)
    assert ledger.pending_bytes == 0


async def test_the_list_names_a_ledger_before_it_is_written(slow: Bench) -> None:
    ledger = await slow.ledger()
    ledger.append([b"a"], None, Outcome())
    await settled()
    again = await slow.ledger()
    assert [s.ledger_id for s in again.chain.segments] == []
    assert 0 not in slow.ledgers.ledgers, (
        "it was named, so it could be found, and being empty deleted"
    )


async def test_indexes_count_messages_not_entries(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    ledger.append([b"x", b"y"], [3, 1], Outcome())
    ledger.append([b"z"], None, Outcome())
    await settled()
    assert await indexes(ledger) == [2, 3, 4], "of the last message of each entry"
    assert ledger.next_index == 5


async def test_what_was_stored_is_kept_by_nobody_who_was_told(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    (place,) = await stored(ledger, b"a")
    with pytest.raises(AssertionError):
        ledger.delivered_index(place)


async def test_a_ledger_that_cannot_be_created_fails_all_who_wait(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    at_once.ledgers.create_failure = StorageFailed("no")
    log: list[object] = []
    outcome = [Outcome(log, i) for i in range(3)]
    for each in outcome:
        ledger.append([b"a"], None, each)
    await settled()
    assert log == [0, 1, 2]
    assert all(isinstance(each.result, StorageFailed) for each in outcome)
    assert (ledger.state, ledger.pending_bytes) == (LogState.IDLE, 0)
    at_once.ledgers.create_failure = None
    assert await stored(ledger, b"b") == [(0, 0)]


async def test_a_failed_write_fails_what_is_behind_it_and_the_next_append_goes_on(
    slow: Bench,
) -> None:
    ledger = await slow.ledger()
    log: list[object] = []
    outcome = [Outcome(log, i) for i in range(4)]
    ledger.append([b"0"], None, outcome[0])
    await settled()
    slow.ledgers.sync()
    for each in outcome[1:3]:
        ledger.append([b"x"], None, each)
    slow.ledgers.ledgers[0].fail(StorageFailed("disk"))
    assert log == [0, 1, 2]
    assert ledger.state is LogState.ROLLING
    ledger.append([b"3"], None, outcome[3])
    await settled()
    slow.ledgers.sync()
    assert outcome[3].result == (1, 0), "in a fresh ledger"
    assert ledger.chain.entries == 2
    assert await indexes(ledger) == [0, 3], "an index is never given twice"


async def test_what_comes_between_two_failures_fails_too(slow: Bench) -> None:
    """Else it would be stored before messages that its producer sent earlier."""
    ledger = await slow.ledger()
    log: list[object] = []
    late = Outcome(log, "late")

    def append_more(result: object) -> None:
        log.append("first")
        ledger.append([b"late"], None, late)

    ledger.append([b"a"], None, append_more)
    ledger.append([b"b"], None, Outcome(log, "second"))
    await settled()
    slow.ledgers.ledgers[0].fail(StorageFailed("disk"))
    assert log == ["first", "second", "late"]
    assert isinstance(late.result, StorageFailed)
    await settled()
    assert ledger.state is LogState.IDLE


async def test_a_write_that_fails_while_the_ledger_rolls(slow: Bench) -> None:
    """Once two tasks were in charge then, and the new ledger lost its writer."""
    ledger = await slow.ledger()
    ledger.append([b"a"], None, Outcome())
    await settled()
    for _ in range(2):
        ledger.append([b"a"], None, Outcome())
    tail = Outcome()
    full = slow.ledgers.ledgers[0]
    ledger.append([b"tail"], None, tail)
    full._waiting, behind = type(full._waiting)(list(full._waiting)[:3]), full._waiting[3]
    slow.ledgers.sync()
    assert ledger.state is LogState.ROLLING
    after = Outcome()
    behind[1](StorageFailed("disk"))
    ledger.append([b"after"], None, after)
    await settled()
    slow.ledgers.sync()
    assert isinstance(tail.result, StorageFailed)
    assert after.result == (1, 0)
    assert ledger.state is LogState.WRITING


# -- rolling ---------------------------------------------------------------------------------


async def test_roll_by_entries(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    for _ in range(7):
        await stored(ledger, b"x")
    assert [s.entries for s in ledger.chain.segments] == [3, 3, 1]
    assert [s.first_index for s in ledger.chain.segments] == [0, 3, 6]
    assert at_once.ledgers.ledgers[0].closed
    assert await indexes(ledger) == list(range(7))


async def test_a_full_ledger_goes_on_until_it_is_old_enough() -> None:
    async with bench(RollLimits(entries_max=2, age_ms_min=1000)) as made:
        ledger = await made.ledger()
        await stored(ledger, b"1", b"2", b"3")
        assert len(ledger.chain.segments) == 1
        made.clock.forward(1)
        await stored(ledger, b"4")
        assert await stored(ledger, b"5") == [(1, 0)]


async def test_roll_by_size() -> None:
    async with bench(RollLimits(bytes_max=100, age_ms_min=0)) as made:
        ledger = await made.ledger()
        for _ in range(4):
            await stored(ledger, bytes(45))
        assert [s.entries for s in ledger.chain.segments] == [2, 2]
        assert ledger.chain.segments[0].size == made.ledgers.ledgers[0].length


async def test_roll_by_age() -> None:
    async with bench(RollLimits(age_ms_max=1000)) as made:
        ledger = await made.ledger()
        await stored(ledger, b"x")
        begun_ms = made.clock.wall_ms()
        await ledger.roll_if_old()
        assert ledger.state is LogState.WRITING
        made.clock.forward(1)
        await ledger.roll_if_old()
        assert ledger.state is LogState.IDLE
        assert ledger.chain.segments[0].closed_ms == made.clock.wall_ms()
        assert (await made.ledger()).chain.segments[0].begun_ms == begun_ms


async def test_a_roll_waits_for_what_is_in_flight(slow: Bench) -> None:
    ledger = await slow.ledger()
    outcome = [Outcome() for _ in range(5)]
    for each in outcome:
        ledger.append([b"x"], None, each)
    await settled()
    slow.ledgers.sync()
    await settled()
    assert [each.result for each in outcome] == [(0, i) for i in range(5)], "none is cut off"
    assert ledger.state is LogState.IDLE


async def test_a_ledger_that_cannot_be_sealed_is_sealed_later(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"x")
    first = at_once.ledgers.ledgers[0]

    async def fail() -> None:
        raise StorageFailed("no")

    close, first.close = first.close, fail  # type: ignore[method-assign, assignment]
    await ledger.roll()
    assert ledger.state is LogState.IDLE
    assert not ledger.chain.segments[0].closed_ms
    first.close = close  # type: ignore[method-assign]
    assert await stored(ledger, b"y") == [(1, 0)]
    await ledger.roll_if_old()
    assert ledger.chain.segments[0].closed_ms
    assert first.closed


async def test_trouble_with_metadata_does_not_end_the_server(at_once: Bench) -> None:
    """A task that raised would take the broker's nursery with it."""
    ledger = await at_once.ledger()
    await stored(ledger, b"x")
    put = at_once.metadata.put

    async def fail(path: str, value: bytes, expected: int) -> int:
        raise StorageFailed("no")

    at_once.metadata.put = fail  # type: ignore[method-assign]
    await ledger.roll()
    outcome = Outcome()
    ledger.append([b"y"], None, outcome)
    await settled()
    assert isinstance(outcome.result, StorageFailed)
    assert sorted(at_once.ledgers.ledgers) == [0], "what was created in vain is deleted"
    at_once.metadata.put = put  # type: ignore[method-assign]
    assert await stored(ledger, b"z") == [(2, 0)]


# -- opening again ---------------------------------------------------------------------------


async def test_opening_again_recovers_the_last_ledger_and_counts_on(at_once: Bench) -> None:
    lost = await at_once.ledger()
    await stored(lost, b"1", b"2", b"3")
    await stored(lost, b"4")
    again = await at_once.ledger()
    assert at_once.ledgers.ledgers[1].closed, "whoever wrote it is fenced"
    assert again.chain.confirmed == (1, 0)
    assert [s.entries for s in again.chain.segments] == [3, 1]
    assert again.next_index == 4
    assert await stored(again, b"5") == [(2, 0)]
    assert await indexes(again) == [0, 1, 2, 3, 4]


async def test_the_former_owner_lets_go(at_once: Bench) -> None:
    lost: list[bool] = []
    former = ManagedLedger(at_once.storage, NAME, lambda: None, lambda: lost.append(True))
    await former.open()
    await stored(former, b"1")
    await stored(await at_once.ledger(), b"2")
    outcome = [Outcome(), Outcome()]
    former.append([b"x"], None, outcome[0])
    await settled()
    assert isinstance(outcome[0].result, Fenced), "by the ledger, and so by the list"
    former.append([b"x"], None, outcome[1])
    await settled()
    assert isinstance(outcome[1].result, BrokerError)
    assert former.state is LogState.CLOSED
    assert lost == [True]
    third = await at_once.ledger()
    assert third.chain.entries == 2


async def test_properties_and_the_index_outlive_trimmed_ledgers(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1", b"2", b"3")
    await ledger.set_property("k", "v")
    await ledger.roll()
    await ledger.trim([0])
    assert ledger.chain.entries == 0
    assert ledger.chain.first == (0, 3), "where the next one will be, as far as one can know"
    again = await at_once.ledger()
    assert (again.next_index, again.properties["k"]) == (3, "v")
    assert await stored(again, b"4") == [(1, 0)]
    await again.set_property("k", None)
    assert "k" not in (await at_once.ledger()).properties


async def test_a_ledger_that_is_gone_leaves_the_list(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    for _ in range(2):
        await stored(ledger, b"1", b"2", b"3")
    await ledger.close()
    del at_once.ledgers.ledgers[1]
    again = await at_once.ledger()
    assert again.chain.confirmed == (0, 2)
    assert again.next_index == 6


# -- the ways to end -------------------------------------------------------------------------


async def test_close_waits_for_what_is_in_flight(slow: Bench) -> None:
    ledger = await slow.ledger()
    outcome, late = Outcome(), Outcome()
    ledger.append([b"x"], None, outcome)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.close)  # while it is being opened
        await settled()
        assert ledger.state is LogState.ROLLING
        ledger.append([b"late"], None, late)
        assert isinstance(late.result, Fenced)
        slow.ledgers.sync()
    assert outcome.result == (0, 0)
    assert ledger.state is LogState.CLOSED
    assert slow.ledgers.ledgers[0].closed


async def test_a_closer_who_is_cancelled_leaves_nothing_stuck(slow: Bench) -> None:
    ledger = await slow.ledger()
    outcome = Outcome()
    ledger.append([b"x"], None, outcome)
    await settled()
    with trio.move_on_after(0):
        await ledger.close()
    slow.ledgers.sync()
    await settled()
    assert outcome.result == (0, 0)
    await ledger.close()
    assert ledger.state is LogState.CLOSED


async def test_terminate_is_for_ever(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1", b"2")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.terminate)
        nursery.start_soon(ledger.terminate)
    assert await ledger.terminate() == (0, 1)
    for one in (ledger, await at_once.ledger()):
        outcome = Outcome()
        one.append([b"x"], None, outcome)
        assert isinstance(outcome.result, Terminated)
        assert one.terminated
    await ledger.close()
    with pytest.raises(Fenced):
        await ledger.terminate()


async def test_a_terminated_log_stays_so_when_its_ledgers_are_gone(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1")
    await ledger.terminate()
    at_once.ledgers.ledgers.clear()
    assert (await at_once.ledger()).terminated
    assert (await at_once.ledger()).terminated, "nor does writing the shorter list change that"


async def test_a_termination_that_could_not_be_stored_did_not_happen(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1")
    await ledger.roll()
    put = at_once.metadata.put

    async def fail(path: str, value: bytes, expected: int) -> int:
        raise StorageFailed("no")

    at_once.metadata.put = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await ledger.terminate()
    at_once.metadata.put = put  # type: ignore[method-assign]
    assert await stored(ledger, b"2") == [(1, 0)]


async def test_a_closed_ledger_writes_no_list(at_once: Bench) -> None:
    """It would throw out whoever has opened the topic since."""
    ledger = await at_once.ledger()
    await ledger.close()
    again = await at_once.ledger()
    with pytest.raises(Fenced):
        await ledger.set_property("epoch", "1")
    await again.set_property("epoch", "2")


async def test_delete_forgets_the_list_and_then_the_ledgers(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1", b"2", b"3")
    await stored(ledger, b"4")
    await ledger.delete()
    assert at_once.ledgers.ledgers == {}
    assert await at_once.metadata.get(ledger.path) is None


async def test_delete_yields_to_another_owner(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(await at_once.ledger(), b"x")
    with pytest.raises(Fenced):
        await ledger.delete()
    assert len(at_once.ledgers.ledgers) == 1


# -- trimming and reading --------------------------------------------------------------------


async def test_the_ledger_being_written_is_read_however_many_others_are(at_once: Bench) -> None:
    """Once its reader was pushed out by those of older ledgers, and knew no end of its own."""
    ledger = await at_once.ledger()
    for _ in range(12):
        await stored(ledger, b"1", b"2", b"3")
    place = (await stored(ledger, b"last"))[0]
    for segment in ledger.chain.segments:
        await ledger.read((segment.ledger_id, 0), 1, 1)
    (entry,) = (await ledger.read(place, 1, 1)).payloads
    assert entry.endswith(b"last")


async def test_reading_during_a_roll_does_not_fence_the_writer(slow: Bench) -> None:
    ledger = await slow.ledger()
    ledger.append([b"x"], None, Outcome())
    await settled()
    slow.ledgers.sync()
    ledger.append([b"y"], None, Outcome())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.roll)
        await settled()
        await ledger.read((0, 0), 1, 1)
        slow.ledgers.sync()
    assert ledger.chain.segments[0].entries == 2


async def test_the_tail_is_cached_while_anybody_reads_close_behind(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"1")
    assert ledger.cached((0, 0)) is None
    ledger.cache_tail(True)
    await stored(ledger, b"2")
    found = ledger.cached((0, 1))
    assert found is not None
    assert found[0].payloads[found[1]] == b"2"
    await ledger.close()
    assert at_once.cache.bytes == 0


async def test_size_and_statistics(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    for _ in range(2):
        await stored(ledger, b"1", b"2", b"3")
    await stored(ledger, b"4")
    stores = at_once.ledgers.ledgers
    assert ledger.size == sum(one.length for one in stores.values())
    assert ledger.bytes_after(START) == ledger.size
    assert ledger.bytes_after((1, 2)) == stores[2].length
    assert ledger.bytes_after((2, 0)) == 0
    now = ledger.statistics()
    assert (now.entries, now.open_entries, now.state, now.pending_appends) == (7, 1, "WRITING", 0)


# -- gathering -------------------------------------------------------------------------------


async def test_what_is_appended_in_one_sweep_goes_to_storage_as_one_run(slow: Bench) -> None:
    gathered: list[ManagedLedger] = []
    slow.storage = structs.replace(slow.storage, gather=gathered.append)
    ledger = await slow.ledger()
    ledger.append([b"0"], None, Outcome())
    await settled()
    slow.ledgers.sync()
    outcome = [Outcome() for _ in range(3)]
    ledger.append([b"a", b"b"], None, outcome[0])
    ledger.append([b"c"], [5], outcome[1])
    ledger.append([b"d"], None, outcome[2])
    stored_by = slow.ledgers.ledgers[0]
    assert gathered == [ledger], "asked once"
    assert len(stored_by.entries) == 1, "nothing is given to storage before the sweep is over"
    ledger.write()
    assert len(stored_by.entries) == 5
    assert len(stored_by._waiting) == 1, "one run"
    slow.ledgers.sync()
    assert [each.result for each in outcome] == [(0, 1), (0, 3), (0, 4)]
    assert await indexes(ledger) == [0, 1, 2, 7, 8]


async def test_gathered_appends_wait_for_the_next_ledger_if_this_one_ends(slow: Bench) -> None:
    gathered: list[ManagedLedger] = []
    slow.storage = structs.replace(slow.storage, gather=gathered.append)
    ledger = await slow.ledger()
    for _ in range(3):
        ledger.append([b"a"], None, Outcome())
    await settled()
    late = Outcome()
    ledger.append([b"late"], None, late)
    slow.ledgers.sync()  # three entries fill it
    assert ledger.state is LogState.ROLLING
    ledger.write()
    await settled()
    slow.ledgers.sync()
    assert late.result == (1, 0)


async def test_what_another_broker_noted_about_a_ledger_outlives_our_rewrites(
    at_once: Bench,
) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"a")
    await ledger.close()
    path = ledger.path
    written = await at_once.metadata.get(path)
    assert written is not None
    info = formats.decode_managed_ledger(written.value)
    marked = structs.replace(
        info.ledgers[0],
        properties={**info.ledgers[0].properties, "theirs": "kept"},
        offload_context=b"\x08\x07",
    )
    info = structs.replace(info, ledgers=[marked])
    await at_once.metadata.put(path, formats.encode_managed_ledger(info), written.version)
    again = await at_once.ledger()
    await stored(again, b"b")
    rewritten = await at_once.metadata.get(path)
    assert rewritten is not None
    first = formats.decode_managed_ledger(rewritten.value).ledgers[0]
    assert first.properties["theirs"] == "kept"
    assert first.offload_context == b"\x08\x07"


async def test_a_ledger_that_is_let_go_while_it_opens_stays_so(
    at_once: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote the list before it heard; nothing is written into what it named."""
    ledger = await at_once.ledger()
    put = at_once.metadata.put

    async def put_and_lose(path: str, value: bytes, expected: int) -> int:
        version = await put(path, value, expected)
        ledger.fence(Fenced("another owner"))
        return version

    monkeypatch.setattr(at_once.metadata, "put", put_and_lose)
    outcome = Outcome()
    ledger.append([b"x"], None, outcome)
    await settled()
    assert isinstance(outcome.result, Fenced)
    assert ledger.state is LogState.CLOSED
    assert ledger.statistics().open_entries == 0
    with trio.fail_after(1):
        await ledger.close()


async def test_the_table_of_states_is_enforced(at_once: Bench) -> None:
    ledger = await at_once.ledger()
    with pytest.raises(RuntimeError, match="does not become"):
        ledger._enter(LogState.WRITING)
    for state, following in LEAVES.items():
        assert LogState.CLOSED in following or state is LogState.CLOSED, (
            "it may be taken over any time"
        )


def test_the_table_of_states_is_the_one_in_the_docstring() -> None:
    """Its rows name the states, and only those that may follow."""
    text = (managed_ledger.__doc__ or "").split("leaves for")[1].split("`LEAVES`")[0]
    rows = [re.findall(r"[A-Z]{4,}", row) for row in re.split(r"\n    (?=[A-Z])", text)[1:]]
    drawn = {state: set(following) for state, *following in rows}
    table = {
        state.name: {one.name for one in following} - {"CLOSED"}
        for state, following in LEAVES.items()
    }
    assert drawn == table
