"""Taking marked ledgers under their locks."""

import random

import pytest
import trio
import trio.lowlevel

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.bookie.replication.marked_ledgers import MarkedLedgers
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import remove

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "id")


class Brittle(MemoryMetadata):
    """A store that may fail once."""

    failing = ""

    async def get(self, path):
        self._break(f"get {path}")
        return await super().get(path)

    async def delete(self, path, expected):
        self._break(f"delete {path}")
        await super().delete(path, expected)

    async def lease(self, path, value, lost):
        if self.failing.startswith("late"):
            self.failing = ""
            self.late = lambda: super(Brittle, self).lease(path, value, lost)
            raise StorageFailed("no answer")
        await super().lease(path, value, lost)
        self._break(f"lease {path}")

    def _break(self, what):
        if self.failing and self.failing in what:
            self.failing = ""
            raise StorageFailed("no answer")


@pytest.fixture
async def marked():
    marks = UnderReplication(Brittle(), CLUSTER)
    await marks.prepare()
    return MarkedLedgers(marks, "worker:1", random.Random(1))


async def locks(marked):
    return await marked.marks.store.children(marked.marks.locks)


async def test_each_ledger_is_taken_once(autojump_clock, marked):
    for ledger_id in (7, 8, 5_000_000_000):
        await marked.marks.mark(ledger_id, ["a"], 1)
    found = {(await marked.take()).ledger_id for _ in range(3)}
    assert found == {7, 8, 5_000_000_000}
    assert await locks(marked) == ["urL0000000007", "urL0000000008", "urL5000000000"]
    lock = await marked.marks.store.get(f"{marked.marks.locks}/urL0000000007")
    assert lock.value == b'bookieId: "worker:1"\n'
    with trio.move_on_after(10) as scope:
        await marked.take()
    assert scope.cancelled_caught


async def test_one_that_another_worker_has_is_left_to_it(autojump_clock, marked, nursery):
    await marked.marks.mark(7, ["a"], 1)
    lock = f"{marked.marks.locks}/urL0000000007"
    await marked.marks.store.put(lock, b'bookieId: "other"\n', ABSENT)
    taken = []

    async def take():
        taken.append(await marked.take())

    nursery.start_soon(take)
    await trio.testing.wait_all_tasks_blocked()
    assert not taken
    await remove(marked.marks.store, lock)
    await trio.sleep(1)
    assert [each.ledger_id for each in taken] == [7]


async def test_the_version_is_that_of_the_mark_under_the_lock(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    await marked.marks.mark(7, ["b"], 1)
    ledger = await marked.take()
    assert ledger.version == 1
    await marked.release(ledger)
    assert (await marked.take()).version == 1


async def test_nothing_is_taken_while_that_is_disabled(autojump_clock, marked, nursery):
    await marked.marks.mark(7, ["a"], 1)
    await marked.marks.disable()
    with trio.move_on_after(10) as scope:
        await marked.take()
    assert scope.cancelled_caught
    await marked.marks.enable()
    assert (await marked.take()).ledger_id == 7


async def test_a_lost_lock_ends_what_is_done_under_it(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    ledger = await marked.take()
    ended = False
    with ledger.held():
        marked.marks.store.expire()
        await trio.lowlevel.checkpoint()
        ended = True
    assert not ended
    with ledger.held():
        await trio.lowlevel.checkpoint()
        ended = True
    assert not ended, "also what begins afterwards"
    await marked.release(ledger)


async def test_whoever_has_a_lock_is_told_once(autojump_clock, marked, nursery):
    lock = marked.marks.lock_of(7)
    await marked.marks.store.put(lock, b'bookieId: "worker:2"\n', ABSENT)
    assert await marked.lock_now(7) is None
    holders, taken = [], []

    async def take():
        taken.append(await marked.lock(7, holders.append))

    nursery.start_soon(take)
    await trio.testing.wait_all_tasks_blocked()
    await marked.marks.mark(8, ["a"], 1)  # a change, and the lock is where it was
    await trio.sleep(1)
    assert (holders, taken) == (["worker:2"], [])
    await remove(marked.marks.store, lock)
    await trio.sleep(1)
    assert (holders, [each.ledger_id for each in taken]) == (["worker:2"], [7])


async def test_a_lock_is_released_in_spite_of_errors(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    ledger = await marked.take()
    marked.marks.store.failing = "delete"
    await marked.release(ledger)
    assert await locks(marked) == []


async def test_no_lock_stays_when_the_mark_cannot_be_read(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    marked.marks.store.failing = "get /ledgers/underreplication/ledgers"
    with pytest.raises(StorageFailed):
        await marked.take()
    assert await locks(marked) == []


async def test_a_mark_that_is_gone_under_the_lock_is_of_no_interest(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    assert await marked._lock("urL0000000008") is None
    assert await marked._lock("other") is None
    assert await locks(marked) == []


async def test_a_lock_whose_answer_was_lost_is_not_kept(autojump_clock, marked):
    await marked.marks.mark(7, ["a"], 1)
    marked.marks.store.failing = "lease"
    with pytest.raises(StorageFailed):
        await marked.take()
    assert await locks(marked) == ["urL0000000007"]
    assert (await marked.take()).ledger_id == 7


async def test_a_lock_that_comes_late_is_released_when_it_does(autojump_clock, marked, nursery):
    """Its answer was lost, and it was not there when it was looked for."""
    await marked.marks.mark(7, ["a"], 1)
    marked.marks.store.failing = "late"
    with pytest.raises(StorageFailed):
        await marked.take()
    await marked.marks.disable()
    taken = []

    async def take():
        taken.append(await marked.take())

    nursery.start_soon(take)
    await trio.testing.wait_all_tasks_blocked()
    await marked.marks.store.late()
    await trio.sleep(1)
    assert await locks(marked) == []
    await marked.marks.enable()
    await trio.sleep(1)
    assert [each.ledger_id for each in taken] == [7]
    assert await locks(marked) == ["urL0000000007"], "the one that is held now stays"
    await marked.marks.mark(8, ["a"], 1)
    assert (await marked.take()).ledger_id == 8
    assert await locks(marked) == ["urL0000000007", "urL0000000008"]
