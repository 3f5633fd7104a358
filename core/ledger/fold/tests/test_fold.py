"""Folds: after a restart, whatever was cut off when, a view says what the log says.

One suite for all views. A table (`CASES`, in `folds.py`) says of each how its entries look, how a
change is applied as an entry is stored, and where its snapshots are. The model is a fresh view to
which every entry that is stored was applied, in order.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from magnetar.core.entry.kafka import form
from magnetar.core.kernel.errors import BrokerError, Fenced, StorageFailed
from magnetar.core.ledger.fold.fold import UNLIMITED, Fold, FoldState
from magnetar.core.ledger.log.managed_ledger import LogState
from magnetar.core.ledger.tests.folds import (
    CASES,
    Case,
    History,
    OfProducers,
    OfSequences,
    OfTransactions,
    PowerCut,
    Step,
)
from magnetar.core.testing.bench import Bench, IndexedOutcome, bench, settled
from magnetar.core.testing.metadata import overwrite

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
covering_case = pytest.mark.parametrize(
    "case", [OfSequences, OfTransactions], ids=lambda case: case.__name__
)
"""Those that hold entries until a snapshot covers them."""


FEW: list[Step] = [(0, 1), (0, 2), (0, 1), (2, 2), (0, 3), (1, 1), (0, 2), (2, 1)]
"""More than two ledgers of them."""


# -- what survives -------------------------------------------------------------------------------


@each_case
@pytest.mark.parametrize("end", ["killed", "closed"])
@pytest.mark.parametrize("saved", [0, 3, 8])
async def test_a_restart_forgets_nothing(desk: Bench, case: Case, end: str, saved: int) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW[:saved])
    await history.subject.fold.save()
    await history.write(*FEW[saved:])
    if end == "closed":
        await history.ledger.close()
        await history.subject.fold.close()
    before = history.subject.state()
    await history.load()
    history.check()
    assert history.subject.state() == before
    await history.write(*FEW)
    await history.load()
    history.check()


steps = st.tuples(st.sampled_from([0, 0, 1, 2]), st.integers(1, 3))
deeds = st.lists(
    st.one_of(
        steps,
        st.sampled_from(["save", "crash", "crash", "unload", "roll", "trim", "trim", "cut"]),
    ),
    max_size=25,
)


async def play(history: History, story: list[Step | str]) -> None:
    for deed in story:
        if isinstance(deed, tuple):
            await history.write(deed)
        elif deed == "save":
            await history.subject.fold.save()
        elif deed == "roll":
            await history.ledger.roll()
        elif deed == "trim" and history.subject.fold._rules.holds:
            await history.trim(1)
        elif deed == "cut" and history.subject.fold._rules.holds:
            index = history.ledger.confirmed_index - 1
            if index >= 0:
                await history.ledger.cut(index, history.ledger.chain.confirmed)
        elif deed in ("crash", "unload"):
            if deed == "unload":
                await history.ledger.close()
                await history.subject.fold.close()
            await history.load()
            history.check()


@each_case
@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(story=deeds)
def test_any_history_gives_what_the_log_says(case: Case, story: list[Step | str]) -> None:
    async def run() -> None:
        async with bench() as desk:
            history = await History(desk, case).begin()
            await play(history, [*story, "crash"])

    trio.run(run)


async def a_life(history: History) -> None:
    """Every step that a fold and its log do; each may fail, and the next is tried all the same."""
    fold = history.subject.fold

    async def close() -> None:
        await history.ledger.close()
        await fold.close()

    for deed in (
        lambda: history.write(*FEW[:4]),
        fold.save,
        lambda: history.write(*FEW[4:]),
        lambda: history.trim(1) if fold._rules.holds else fold.save(),
        lambda: history.write((1, 2), (0, 1)),
        lambda: history.trim(1) if fold._rules.holds else fold.save(),
        close,
    ):
        try:
            await deed()  # type: ignore[no-untyped-call]  # a list of several kinds of calls
        except BrokerError:
            continue


@each_case
@pytest.mark.parametrize("happens", [True, False], ids=["happens", "does not happen"])
async def test_a_crash_at_any_step(case: Case, happens: bool) -> None:
    struck = True
    at = 0
    while struck:
        async with bench() as desk:
            history = await History(desk, case).begin()
            cut = PowerCut(desk, at, happens=happens)
            await a_life(history)
            await settled()
            struck = cut.struck
            cut.ends()
            await history.load()
            history.check()
        at += 1
    assert at > 8, "there were so many steps"


# -- what leaves the log -------------------------------------------------------------------------


@covering_case
async def test_entries_stay_until_a_snapshot_covers_them(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    put = desk.metadata.put

    async def fail(path: str, value: bytes, expected: int) -> int:
        if path == case.path:
            raise StorageFailed("no")
        return await put(path, value, expected)

    desk.metadata.put = fail  # type: ignore[method-assign]
    first = history.ledger.chain.first
    with pytest.raises(StorageFailed):
        await history.trim(2)
    assert history.ledger.chain.first == first
    desk.metadata.put = put  # type: ignore[method-assign]
    await history.trim(2)
    assert history.ledger.chain.first > first
    await history.load()
    history.check()


async def test_what_is_not_held_may_go(desk: Bench) -> None:
    history = await History(desk, OfProducers).begin()
    await history.write(*FEW)
    position = history.subject.fold.position
    await history.trim(1)
    assert history.subject.fold.position == position
    await history.load()
    assert history.subject.state() == history.model(first=3)


async def test_a_log_that_was_trimmed_to_nothing_is_still_the_same(desk: Bench) -> None:
    history = await History(desk, OfSequences).begin()
    await history.write(*FEW)
    await history.ledger.close()
    await history.subject.fold.close()
    await history.load()
    await history.trim(9)
    assert history.ledger.chain.segments == []
    for _ in range(2):
        await history.load()
        history.check()
    await history.write(*FEW)
    await history.load()
    history.check()


# -- snapshots that are not believed -------------------------------------------------------------


@each_case
@pytest.mark.parametrize("junk", [b"", b"junk", b"\x78\x9c\x03"])
async def test_after_a_rotten_snapshot_the_log_is_read(
    desk: Bench, case: Case, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.subject.fold.save()
    await history.write((0, 1))
    await history.ledger.close()
    await history.subject.fold.close()
    await overwrite(desk.metadata, case.path, b"\xff" + junk)
    await history.load()
    history.check()
    assert "start over from the first entry that is left" in caplog.text
    await history.write(*FEW)
    await history.subject.fold.save()
    await history.load()
    history.check()


@pytest.mark.parametrize("case", [OfTransactions, OfProducers], ids=lambda case: case.__name__)
async def test_a_snapshot_of_a_log_that_had_this_name_is_not_believed(
    desk: Bench, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever deleted the log did not know of it: a front that had not loaded the topic."""
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.subject.fold.save()
    await history.ledger.delete()
    desk.clock.forward(1)
    left = await desk.metadata.get(case.path)
    assert left is not None
    again = await History(desk, case).begin()
    await overwrite(desk.metadata, case.path, left.value)
    await again.write((0, 2), (0, 3))
    await again.load()
    again.check()
    assert "is of another log" in caplog.text


@each_case
async def test_a_snapshot_of_more_than_the_log_has_is_not_believed(desk: Bench, case: Case) -> None:
    """Storage has lost the last ledger: what was in it may be sent again."""
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.ledger.close()
    await history.subject.fold.close()
    lost = history.ledger.chain.segments[-1]
    del desk.ledgers.ledgers[lost.ledger_id]
    await history.load()
    left = range(lost.first_index, len(history.entries))
    assert history.subject.state() == history.model(without=left)


@covering_case
async def test_nor_one_of_more_than_the_last_ledger_has(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.subject.fold.save()
    last = desk.ledgers.ledgers[history.ledger.chain.segments[-1].ledger_id]
    del last.entries[-1:]
    last.last_confirmed -= 1
    await history.load()
    left = range(len(history.entries) - 1, len(history.entries))
    assert history.subject.state() == history.model(without=left)


@each_case
async def test_snapshots_without_a_time_of_creation_go_by_the_ledger(
    desk: Bench, case: Case
) -> None:
    """Those of older versions, and of logs that older versions made."""
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.subject.fold.save()
    await history.ledger.set_property("magnetar.created-ms", None)
    await history.load()
    assert history.subject.fold.position > (-1, -1)
    history.check()


# -- damage --------------------------------------------------------------------------------------


@each_case
async def test_what_is_lost_is_passed_over(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    second = history.ledger.chain.segments[1]
    desk.ledgers.ledgers[second.ledger_id].damaged = {0, 1}
    await history.load()
    lost = range(second.first_index, second.first_index + 2)
    assert history.subject.state() == history.model(without=lost)


@each_case
async def test_what_nobody_can_parse_is_passed_over(
    desk: Bench, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW[:2])
    for rotten in (b"", b"\x0e\x01", form.wrapped(b"\0" * 30, 1, 1)):
        outcome = IndexedOutcome(history.ledger)
        history.ledger.append([rotten], None, outcome)
        await settled()
        history.keep(outcome.index, b"")
    await history.write(*FEW[2:])
    await history.load()
    history.check()
    if case is not OfSequences:
        assert "pass over the entry at" in caplog.text


# -- two owners ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [OfTransactions, OfProducers], ids=lambda case: case.__name__)
async def test_of_two_owners_the_former_one_is_fenced(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW[:3])
    await history.subject.fold.save()
    await history.write(*FEW[3:5])
    ledger, fold = history.ledger, history.subject.fold
    await history.load()
    with pytest.raises(Fenced):
        await fold.save()
    assert ledger.state is LogState.CLOSED
    await fold.close()
    await history.write(*FEW[5:])
    await history.subject.fold.save()
    await history.load()
    history.check()


@each_case
async def test_whoever_is_the_loser_the_log_says_what_is(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW[:3])
    await history.subject.fold.save()
    await history.write(*FEW[3:5])
    former = history.subject.fold
    await history.load()
    await history.write(*FEW[5:])
    lost = 0
    for fold in (former, history.subject.fold, former):
        try:
            await fold.save()
        except Fenced:
            lost += 1
    assert lost
    await history.load()
    history.check()


# -- when snapshots are taken --------------------------------------------------------------------


def ruled(history: History, **rules: int) -> Fold[Any]:
    fold = history.subject.fold
    fold._rules = replace(
        fold._rules, **{"entries": UNLIMITED, "bytes": UNLIMITED, "pause_ms": 0, **rules}
    )
    fold.counts = True
    return fold


@each_case
async def test_snapshots_follow_entries(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    fold = ruled(history, entries=3)
    await history.write(*FEW[:2])
    first = fold.position
    await history.write(FEW[2])
    assert fold.position == history.ledger.chain.confirmed > first
    await history.write(*FEW[3:5])
    assert fold.position < history.ledger.chain.confirmed


@each_case
async def test_snapshots_follow_bytes(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    fold = ruled(history, bytes=1)
    await history.write(FEW[0])
    assert fold.position == history.ledger.chain.confirmed


@each_case
async def test_between_snapshots_is_a_pause(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    fold = ruled(history, entries=1, pause_ms=1_000)
    await history.write(FEW[0])
    first = fold.position
    await history.write(FEW[1])
    assert fold.position == first
    desk.clock.forward(1)
    await history.write(FEW[2])
    assert fold.position == history.ledger.chain.confirmed


@each_case
async def test_what_was_replayed_counts_for_the_next_snapshot(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.load()
    fold = ruled(history, entries=len(FEW) + 1)
    await history.write(FEW[0])
    assert fold.position == history.ledger.chain.confirmed


@each_case
async def test_a_snapshot_that_fails_is_said_and_taken_again(
    desk: Bench, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    history = await History(desk, case).begin()
    fold = ruled(history, entries=2)
    cut = PowerCut(desk, 10**9, happens=False)
    await history.write(FEW[0])
    cut.left = 0
    await history.write(FEW[1])
    cut.ends()
    assert "no snapshot of" in caplog.text
    await history.write(*FEW[2:4])
    assert fold.position == history.ledger.chain.confirmed


@each_case
async def test_nothing_new_is_not_stored_again(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    fold = history.subject.fold
    await fold.save()
    cut = PowerCut(desk, 0, happens=False)
    desk.ledgers.full = True
    await fold.save()
    assert not cut.struck
    fold.changed()
    for _ in range(2):
        with pytest.raises(StorageFailed):
            await fold.save()
    cut.ends()


# -- states --------------------------------------------------------------------------------------


@each_case
async def test_a_fold_lives_once(desk: Bench, case: Case) -> None:
    history = await History(desk, case).begin()
    fold = history.subject.fold
    assert history.ledger.followers == (fold,)
    with pytest.raises(AssertionError):
        await fold.begin(stored=False)
    await fold.close()
    await fold.close()
    assert (fold.state, history.ledger.followers) == (FoldState.CLOSED, ())
    await fold.save()
    with pytest.raises(AssertionError):
        await fold.begin(stored=False)


@each_case
@pytest.mark.parametrize("loaded", [True, False])
async def test_a_deleted_fold_leaves_nothing(desk: Bench, case: Case, loaded: bool) -> None:
    history = await History(desk, case).begin()
    await history.write(*FEW)
    await history.subject.fold.save()
    if loaded:
        fold = history.subject.fold
    else:
        await history.ledger.close()
        await history.subject.fold.close()
        fold = case(desk, await desk.ledger()).fold
    assert await desk.metadata.get(case.path) is not None
    await fold.delete()
    assert await desk.metadata.get(case.path) is None
    assert fold.state is FoldState.CLOSED
