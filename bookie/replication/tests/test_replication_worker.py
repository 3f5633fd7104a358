"""What a worker does with ledgers that it cannot repair at once."""

import random
from itertools import pairwise

import pytest
import trio
from msgspec.structs import replace

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.bookie.replication.ledger_repair import LedgerCondition
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.bookie.replication.replication_worker import ReplicationWorker
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.kernel.errors import LedgerNotFound, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata

WHOLE, OPEN, INCOMPLETE = LedgerCondition
CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "id")


class ScriptedRepair:
    """Repairs as the test says: outcomes and errors, one after the other, for each ledger."""

    def __init__(self, **outcomes):
        self._outcomes = {int(name[1:]): list(found) for name, found in outcomes.items()}
        self.at = []
        self.suspects = None
        self.meanwhile = None

    async def repair(self, ledger_id, suspects):
        self.suspects = suspects
        await trio.lowlevel.checkpoint()
        self.at.append((ledger_id, trio.current_time()))
        if self.meanwhile is not None:
            await self.meanwhile()
        outcome = self._outcomes[ledger_id].pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def end_grace(self, ledger_id):
        await trio.lowlevel.checkpoint()
        self.at.append(("end", trio.current_time()))


class ScriptedPresence:
    """Bookie a was there all the time, and b was away when a ledger was marked."""

    def was_away(self, bookie_id, marked_ms):
        assert marked_ms in (1, 2)
        return bookie_id == "b"


@pytest.fixture
async def start(nursery):
    """Start a worker on ledgers that are marked."""

    async def start(repair, settings=None):
        marks = UnderReplication(MemoryMetadata(), CLUSTER)
        await marks.prepare()
        for ledger_id in repair._outcomes:
            await marks.mark(ledger_id, ["a", "b"], 1)
        worker = ReplicationWorker(
            MarkedLedgers(marks, "worker:1", random.Random(1)),
            repair,
            settings or RecoverySettings(),
            ReplicationCounters(),
            ScriptedPresence(),
        )
        nursery.start_soon(worker.run)
        repair.worker = worker
        return marks

    return start


async def locks(marks):
    return await marks.store.children(marks.locks)


async def test_a_whole_ledger_is_unmarked(autojump_clock, start):
    marks = await start(ScriptedRepair(_7=[WHOLE]))
    await trio.sleep(1)
    assert await marks.marked(7) is None
    assert await locks(marks) == []


@pytest.mark.parametrize(("percentage", "suspects"), [(0, ["a"]), (10, ["a", "b"])])
async def test_of_a_bookie_that_was_there_all_the_time_everything_is_read(
    autojump_clock, start, percentage, suspects
):
    """Another auditor has seen what lacks, which this one never looks for."""
    repair = ScriptedRepair(_7=[WHOLE])
    await start(repair, RecoverySettings(verification_percentage=percentage))
    await trio.sleep(1)
    assert list(repair.suspects) == suspects


async def test_a_deleted_ledger_is_unmarked(autojump_clock, start):
    marks = await start(ScriptedRepair(_7=[LedgerNotFound("gone")]))
    await trio.sleep(1)
    assert await marks.marked(7) is None


@pytest.mark.parametrize("missing", ["a", "b"])
async def test_a_ledger_that_is_marked_meanwhile_is_repaired_again(autojump_clock, start, missing):
    repair = ScriptedRepair(_7=[WHOLE, WHOLE])
    marks = await start(repair)

    async def mark():
        repair.meanwhile = None
        await marks.mark(7, [missing], 2)

    repair.meanwhile = mark
    await trio.sleep(5)
    assert len(repair.at) == 2
    assert await marks.marked(7) is None


async def test_pauses_between_failures_grow_and_other_ledgers_go_on(autojump_clock, start):
    failures = [
        INCOMPLETE,
        StorageFailed("x"),
        *[INCOMPLETE] * 5,
        WHOLE,
    ]
    repair = ScriptedRepair(_7=failures, _8=[WHOLE])
    marks = await start(repair)
    await trio.sleep(1)
    assert await locks(marks) == ["urL0000000007"], "kept from others, who would fail too"
    assert await marks.marked(8) is None
    await trio.sleep(2000)
    times = [at for ledger_id, at in repair.at if ledger_id == 7]
    pauses = [round(after - before) for before, after in pairwise(times)]
    assert pauses == [9, 19, 38, 75, 150, 300, 300]
    assert await marks.marked(7) is None


async def test_an_open_ledger_gets_its_grace_period(autojump_clock, start):
    repair = ScriptedRepair(_7=[OPEN, WHOLE])
    marks = await start(repair)
    await trio.sleep(100)
    assert [what for what, _ in repair.at] == [7, "end", 7]
    assert round(repair.at[1][1] - repair.at[0][1]) == 30
    assert await marks.marked(7) is None


async def test_no_more_locks_are_kept_than_that(autojump_clock, start):
    settings = replace(RecoverySettings(), waiting_ledgers_max=1)
    repair = ScriptedRepair(_7=[INCOMPLETE] * 9, _8=[INCOMPLETE] * 9)
    marks = await start(repair, settings)
    for _ in range(20):
        await trio.sleep(3)
        assert len(await locks(marks)) <= 1


async def test_a_worker_whose_session_ends_begins_anew(autojump_clock, start):
    repair = ScriptedRepair(_7=[INCOMPLETE, WHOLE])
    marks = await start(repair)
    await trio.sleep(1)
    marks.store.expire()
    await trio.sleep(1)
    assert len(repair.at) == 2
    assert await marks.marked(7) is None


async def test_a_ledger_that_waits_is_tried_when_there_are_other_bookies(autojump_clock, start):
    repair = ScriptedRepair(_7=[INCOMPLETE, WHOLE])
    marks = await start(repair)
    await trio.sleep(1)
    repair.worker.bookies_changed()
    await trio.sleep(1)
    assert await marks.marked(7) is None
