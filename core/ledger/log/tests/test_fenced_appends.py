"""What a recovery has kept of a fenced ledger is stored, and the rest comes again, in order."""

from collections.abc import AsyncIterator

import pytest

from magnetar.core.entry import header
from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.ledger.log.appends import Append
from magnetar.core.ledger.log.fenced_appends import (
    EMPTY_LEDGERS_MAX,
    FencedAppends,
    stretches_of,
)
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.testing.bench import Bench, Outcome, bench, settled, stored
from magnetar.core.testing.ledgers import MemoryLedger


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
    found, position = [], ledger.chain.first
    while ledger.chain.has(position):
        found.append((await ledger.read(position, 1, 1)).header(0).index)
        position = ledger.chain.after(position)
    return found


def written(entry_id: int, *sizes: int) -> Append:
    """Runs of that many entries, joined."""
    first, *others = [Append([b"x"] * size, None, Outcome()) for size in sizes]
    if others:
        first.join(others)
    first.entry_id = entry_id
    first.first_index = 100 + entry_id
    return first


def test_a_run_is_split_where_the_ledger_ends() -> None:
    fenced = FencedAppends()
    assert not fenced
    fenced.add(written(4, 1, 2, 3))
    fenced.add(written(10, 1))
    assert fenced
    stored = fenced.stored_in(8)
    assert [(one.entry_id, len(one.payloads), one.index_of(one.entry_id)) for one in stored] == [
        (4, 1, 104),
        (5, 2, 105),
        (7, 1, 107),
    ]
    assert [(one.entry_id, len(one.payloads)) for one in fenced.taken()] == [(8, 2), (10, 1)]
    assert not fenced


@pytest.mark.parametrize("again", [False, True])
async def test_a_run_of_which_a_recovery_has_kept_a_part(slow: Bench, again: bool) -> None:
    """Its callback is called once, and can tell where each entry is."""
    ledger = await slow.ledger()
    run, late = Outcome(), Outcome()
    ledger.append([b"%d" % i for i in range(5)], [1, 2, 3, 4, 5], run)
    await settled()
    ledger.append([b"5"], None, late)
    recover(slow.ledgers.ledgers[0], 2)
    await settled()
    assert not run.times
    if again:
        recover(slow.ledgers.ledgers[1], 1)
        await settled()
    slow.ledgers.sync()
    assert (run.times, late.times) == (1, 1)
    assert isinstance(run.result, tuple)
    assert run.result == (0, 0)
    behind = [(1, (1, 0)), (2, (2, 0))] if again else [(3, (1, 0))]
    assert list(stretches_of(run.result, 5)) == [(2, (0, 0)), *behind]
    assert await read_all(ledger) == [b"%d" % i for i in range(6)]
    found = await indexes(ledger)
    assert found == sorted(set(found))
    assert found[:2] == [0, 2], "of the last message in each entry"
    assert ledger.pending_bytes == 0


async def test_a_run_whose_rest_fails_has_failed(slow: Bench) -> None:
    ledger = await slow.ledger()
    run = Outcome()
    ledger.append([b"0", b"1"], None, run)
    await settled()
    recover(slow.ledgers.ledgers[0], 1)
    await settled()
    slow.ledgers.ledgers[1].fail(StorageFailed("disk"))
    await settled()
    assert run.times == 1
    assert isinstance(run.result, StorageFailed)
    assert ledger.pending_bytes == 0


def test_only_a_fence_is_tried_again_and_not_for_ever() -> None:
    fenced = FencedAppends()
    assert not fenced.accepts(StorageFailed("disk"))
    for _ in range(EMPTY_LEDGERS_MAX):
        assert fenced.accepts(Fenced("by a recovery"))
        fenced.add(written(0, 1))
        assert fenced.stored_in(0) == []
    assert not fenced.accepts(Fenced("by a recovery"))
    fenced.stored_in(1)
    assert fenced.accepts(Fenced("by a recovery"))


# -- a ledger that is fenced -----------------------------------------------------------------


def recover(ledger: MemoryLedger, kept: int = 0) -> None:
    """Fence and close a ledger past its writer; so many entries more than were confirmed stay."""
    ledger.last_confirmed += kept
    ledger.closed = True
    ledger.fail(Fenced("a recovery"))


async def read_all(ledger: ManagedLedger) -> list[bytes]:
    found, position = [], ledger.chain.first
    while ledger.chain.has(position):
        (entry,) = (await ledger.read(position, 1, 1)).stored()
        found.append(entry[header.read(entry).size :])
        position = ledger.chain.after(position)
    return found


async def test_an_idle_ledger_that_a_recovery_has_closed_is_noticed_by_nobody(
    at_once: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await at_once.ledger()
    await stored(ledger, b"0", b"1")
    recover(at_once.ledgers.ledgers[0])
    assert await stored(ledger, b"2", b"3") == [(1, 0), (1, 1)]
    assert await read_all(ledger) == [b"0", b"1", b"2", b"3"]
    assert ledger.chain.segments[0].closed_ms
    assert caplog.messages == [
        "persistent://public/default/t: ledger 0 was closed by a recovery: going on in another"
    ]


@pytest.mark.parametrize("kept", range(5))
async def test_what_a_recovery_has_kept_is_not_written_again(slow: Bench, kept: int) -> None:
    ledger = await slow.ledger()
    log: list[object] = []
    outcome = [Outcome(log, i) for i in range(6)]
    ledger.append([b"0"], None, outcome[0])
    await settled()
    slow.ledgers.sync()
    for i in range(1, 5):
        ledger.append([b"%d" % i], None, outcome[i])
    recover(slow.ledgers.ledgers[0], kept)
    ledger.append([b"5"], None, outcome[5])
    await settled()
    slow.ledgers.sync()
    assert log == list(range(6))
    assert [one.result for one in outcome] == [
        *[(0, i) for i in range(kept + 1)],
        *[(1, i) for i in range(5 - kept)],
    ]
    assert await read_all(ledger) == [b"%d" % i for i in range(6)]
    assert ledger.pending_bytes == 0
    found = await indexes(ledger)
    assert found == sorted(set(found))
    await settled()
    again = await slow.ledger()
    assert await read_all(again) == [b"%d" % i for i in range(6)]


async def test_what_a_recovery_has_kept_is_cached_with_its_headers(slow: Bench) -> None:
    """A reader close behind takes it from memory: it must be what storage has."""
    ledger = await slow.ledger()
    ledger.cache_tail(True)
    ledger.append([b"0"], None, Outcome())
    await settled()
    slow.ledgers.sync()
    ledger.append([b"1"], None, Outcome())
    ledger.append([b"2"], None, Outcome())
    recover(slow.ledgers.ledgers[0], 1)
    await settled()
    slow.ledgers.sync()
    for position, least in (((0, 1), 1), ((1, 0), 2)):
        cached = ledger.cached(position)
        assert cached is not None
        part, at = cached
        stored = (await ledger.read(position, 1, 1 << 20)).header(0)
        assert part.header(at).index == stored.index >= least


async def test_a_fenced_ledger_that_cannot_be_sealed_fails_its_appends(slow: Bench) -> None:
    ledger = await slow.ledger()
    log: list[object] = []
    ledger.append([b"0"], None, Outcome())
    await settled()
    slow.ledgers.sync()
    outcome, late = Outcome(log, 0), Outcome(log, 1)
    ledger.append([b"1"], None, outcome)
    recover(slow.ledgers.ledgers.pop(0))
    ledger.append([b"2"], None, late)
    await settled()
    assert log == [0, 1]
    assert isinstance(late.result, StorageFailed)
    assert (ledger.state, ledger.pending_bytes) == (LogState.IDLE, 0)
    assert ledger.chain.confirmed == (0, 0), "it never moves back"


async def test_no_more_than_so_many_ledgers_are_tried(slow: Bench) -> None:
    ledger = await slow.ledger()
    outcome = Outcome()
    ledger.append([b"0"], None, outcome)
    for number in range(EMPTY_LEDGERS_MAX + 1):
        await settled()
        assert not outcome.times
        recover(slow.ledgers.ledgers[number])
    await settled()
    assert isinstance(outcome.result, Fenced)
    assert ledger.pending_bytes == 0


async def test_another_owner_gets_none_of_it(slow: Bench) -> None:
    """Its list is what counts: nothing that waits is written, and what it has kept is its own."""
    ledger = await slow.ledger()
    outcome = Outcome()
    ledger.append([b"0"], None, Outcome())
    await settled()
    slow.ledgers.sync()
    ledger.append([b"1"], None, outcome)
    again = await slow.ledger()
    assert not outcome.times
    await settled()
    assert isinstance(outcome.result, Fenced)
    assert ledger.state is LogState.CLOSED
    assert await read_all(again) == [b"0"]
